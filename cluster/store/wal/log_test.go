package wal

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDisk(t)
		l, m, term := mustOpen(t, d), model{}, uint64(1)
		do := func(o op) {
			if err := o.do(l); err != nil {
				rt.Fatalf("%v: %v", o, err)
			}
			m = m.after(o)
		}
		appendAt := func(first uint64) {
			n := rapid.Uint64Range(1, 12).Draw(rt, "n")
			do(op{logs: entries(first, first+n-1, term)})
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(*rapid.T) {
				_, last := m.ends()
				appendAt(last + 1)
			},
			"append behind a snapshot": func(rt *rapid.T) {
				first, last := m.ends()
				do(op{lo: first, hi: last})
				appendAt(last + rapid.Uint64Range(2, 30).Draw(rt, "hole"))
			},
			"cut the end": func(rt *rapid.T) {
				first, last := m.ends()
				do(op{lo: rapid.Uint64Range(first, last+1).Draw(rt, "from"), hi: last})
				term++
			},
			"compact": func(rt *rapid.T) {
				first, last := m.ends()
				do(op{lo: first, hi: rapid.Uint64Range(first, last).Draw(rt, "to")})
			},
			"reopen": func(*rapid.T) {
				must(t, l.Close())
				l = mustOpen(t, d)
			},
			"": func(rt *rapid.T) {
				if err := m.differs(l); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}

func TestEntriesMustFollow(t *testing.T) {
	l := mustOpen(t, newDisk(t))
	must(t, l.StoreLogs(entries(1, 5, 1)))
	for name, logs := range map[string][]*raft.Log{
		"index 0":              {entry(0, 1)},
		"the last once more":   {entry(5, 1)},
		"a gap":                {entry(7, 1)},
		"a hole in one append": {entry(6, 1), entry(8, 1)},
		"backwards":            {entry(7, 1), entry(6, 1)},
	} {
		if l.StoreLogs(logs) == nil {
			t.Errorf("%s: was stored", name)
		}
	}
	// A mistake of the caller changes nothing, and is not the disk's.
	must(t, l.StoreLogs(entries(6, 6, 1)))
}

// TestInAFolder has a log in real files, with real syncs.
func TestInAFolder(t *testing.T) {
	cfg := Config{SegmentBytes: smallSegment, Write: refusing(), Dir: filepath.Join(t.TempDir(), "log"), Owner: []byte("A")}
	// A crash left a draft behind.
	must(t, os.MkdirAll(filepath.Join(cfg.Dir+draftSuffix, "x"), dirMode))
	must(t, Create(cfg))
	if err := Create(testConfigIn(cfg.Dir)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("making it twice: %v", err)
	}
	l, err := Open(cfg)
	must(t, err)
	m := model{}
	for _, o := range story {
		must(t, o.do(l))
		m = m.after(o)
	}
	must(t, l.Close())
	if drafts, _ := filepath.Glob(filepath.Join(cfg.Dir, "*"+draftSuffix)); len(drafts) != 1 {
		t.Errorf("a closed log leaves %v, want the next segment", drafts)
	}
	l, err = Open(cfg)
	must(t, err)
	if err := m.differs(l); err != nil {
		t.Error(err)
	}
	must(t, l.Close())
	must(t, filepath.Walk(cfg.Dir, func(path string, info fs.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is not private: %v", path, info.Mode())
		}
		return err
	}))
}

func testConfigIn(dir string) Config {
	cfg := testConfig()
	cfg.Dir = dir
	return cfg
}

// FuzzRecord feeds the decoder anything, also with a right sum: it must not
// panic, and what it takes must be what appendRecord makes of it.
func FuzzRecord(f *testing.F) {
	at := recordPos{segment: 3, offset: 5}
	for _, logs := range [][]*raft.Log{nil, entries(7, 7, 2), entries(3, 9, 2)} {
		raw, _, err := appendRecord(nil, at, indexRange{first: 2, last: 9}, 77, logs)
		must(f, err)
		f.Add(raw, true)
		f.Add(raw, false)
		f.Add(raw[:len(raw)-3], true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, mend bool) {
		raw = bytes.Clone(raw)
		if mend && len(raw) >= recordHeaderBytes {
			sum := recordSum(at, raw)
			for i := range 4 {
				raw[recordSumAt+i] = byte(sum >> (24 - 8*i))
			}
		}
		content := append(make([]byte, at.offset), raw...)
		rec, err := decodeRecord(content, at)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		var logs []*raft.Log
		for i, e := range rec.entries {
			log := new(raft.Log)
			must(t, decodeEntry(content[e.offset:e.offset+int64(e.bytes)], rec.base()+1+uint64(i), log))
			logs = append(logs, log)
		}
		again, recAgain, err := appendRecord(nil, at, rec.indexRange, rec.previous, logs)
		must(t, err)
		if !bytes.Equal(again, content[at.offset:rec.end]) {
			t.Errorf("decoded and encoded again:\n%x\n%x", content[at.offset:rec.end], again)
		}
		if diff := cmp.Diff(rec, recAgain, cmp.AllowUnexported(record{}, indexRange{}, extent{})); diff != "" {
			t.Errorf("(-decoded +encoded)\n%s", diff)
		}
	})
}
