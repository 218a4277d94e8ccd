package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/test/tier"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	inLog := func(c *Config, pattern string) string {
		names, _ := filepath.Glob(filepath.Join(c.Dir, logDir, pattern))
		return names[0]
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *Config)
		want   error
	}{
		{"another node's file", func(_ *testing.T, c *Config) { c.NodeID = "another" }, ErrForeign},
		{"a missing file that must exist", func(t *testing.T, c *Config) {
			c.Dir, c.MustExist = t.TempDir(), true
		}, ErrMissing},
		{"a directory in use", func(t *testing.T, c *Config) { mustOpen(t, *c) }, ErrInUse},
		{"a file cut short", func(t *testing.T, c *Config) {
			must(t, os.Truncate(filepath.Join(c.Dir, fileName), 3*4096))
		}, ErrCorrupt},
		{"an empty file", func(t *testing.T, c *Config) {
			must(t, os.Truncate(filepath.Join(c.Dir, fileName), 0))
		}, ErrCorrupt},
		{"a file whose owner was lost", func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketConf).Delete(keyNodeID) })
		}, ErrCorrupt},
		{"a vote without a term", func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error {
				return tx.Bucket(bucketConf).Put([]byte(keyVote), valueWithChecksum([]byte(keyVote), []byte("b")))
			})
		}, ErrCorrupt},
		{"no folder of the log", func(t *testing.T, c *Config) {
			must(t, os.RemoveAll(filepath.Join(c.Dir, logDir)))
		}, ErrCorrupt},
		{"no mark", func(t *testing.T, c *Config) { must(t, os.Remove(inLog(c, "mark"))) }, ErrCorrupt},
		{"no segment", func(t *testing.T, c *Config) { must(t, os.Remove(inLog(c, "*.log"))) }, ErrCorrupt},
		{"a segment cut short", func(t *testing.T, c *Config) { must(t, os.Truncate(inLog(c, "*.log"), 1000)) }, ErrCorrupt},
		{"raft.db was made anew", func(t *testing.T, c *Config) {
			must(t, os.Remove(filepath.Join(c.Dir, fileName)))
			must(t, os.Remove(filepath.Join(c.Dir, fileName+".mark")))
		}, ErrMissing},
		{"raft.db was lost", func(t *testing.T, c *Config) { must(t, os.Remove(filepath.Join(c.Dir, fileName))) }, ErrMissing},
		{"raft.db was lost of a node in a cluster", func(t *testing.T, c *Config) {
			must(t, os.Remove(filepath.Join(c.Dir, fileName)))
			c.MustExist = true
		}, ErrMissing},
		{"entries between snapshot and log were lost", func(t *testing.T, c *Config) {
			s := mustOpen(t, *c)
			must(t, s.DeleteRange(1, 5))
			mustClose(t, s)
		}, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			s := mustOpen(t, cfg)
			must(t, s.StoreLogs(entries(1, 20)))
			mustClose(t, s)
			c.change(t, &cfg)
			wantOpen(t, cfg, c.want)
		})
	}
}

// wantOpen opens a store, which must end with that error, or with none, and closes it.
func wantOpen(t *testing.T, cfg Config, want error) {
	t.Helper()
	s, err := Open(cfg)
	if !errors.Is(err, want) {
		t.Errorf("Open: %v, want %v", err, want)
	}
	if err == nil {
		mustClose(t, s)
	}
}

func TestNewFileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, testConfig(dir, newFatals()))
	info, err := os.Stat(filepath.Join(dir, fileName))
	must(t, err)
	if got := info.Mode().Perm(); got != fileMode {
		t.Errorf("mode %o, want %o", got, fileMode)
	}
	drafts, err := filepath.Glob(filepath.Join(dir, fileName+".new-*"))
	if err != nil || len(drafts) > 0 {
		t.Errorf("drafts left behind: %v %v", drafts, err)
	}
}

func TestWhatWasWrittenIsReadAfterReopening(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	cfg.noSync = false
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 30)))
	must(t, s.DeleteRange(1, 4))
	must(t, s.DeleteRange(29, 30))
	must(t, s.SetUint64([]byte("CurrentTerm"), 7))
	must(t, vote(s, 7, "b"))
	mustClose(t, s)
	// The log no longer begins at 1, so a snapshot must reach to its beginning.
	takeSnapshot(t, cfg, 1, 10, "state")

	s = mustOpen(t, cfg)
	first, err := s.FirstIndex()
	must(t, err)
	last, err := s.LastIndex()
	must(t, err)
	if first != 5 || last != 28 {
		t.Errorf("log is %d to %d, want 5 to 28", first, last)
	}
	for i := first; i <= last; i++ {
		var got raft.Log
		must(t, s.GetLog(i, &got))
		if diff := cmp.Diff(entry(i), &got); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
	}
	term, err := s.GetUint64([]byte("CurrentTerm"))
	if err != nil || term != 7 {
		t.Errorf("term %d, %v", term, err)
	}
	vote, err := s.Get([]byte("LastVoteCand"))
	if err != nil || string(vote) != "b" {
		t.Errorf("vote %q, %v", vote, err)
	}
}

func TestMissingIsSaidAsTheLibraryExpects(t *testing.T) {
	s := mustOpen(t, testConfig(t.TempDir(), newFatals()))
	if _, err := s.GetUint64([]byte("CurrentTerm")); err == nil || err.Error() != "not found" {
		t.Errorf("missing stable value: %v", err)
	}
	if err := s.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("missing entry: %v", err)
	}
	first, err := s.FirstIndex()
	last, err2 := s.LastIndex()
	if first != 0 || last != 0 || err != nil || err2 != nil {
		t.Errorf("empty log is %d to %d, %v %v", first, last, err, err2)
	}
}

func TestAppendLeavesTheEntryAsItIs(t *testing.T) {
	s := mustOpen(t, testConfig(t.TempDir(), newFatals()))
	log := entry(1)
	log.AppendedAt = time.Unix(5, 6).In(time.FixedZone("x", 3600))
	before := *log
	must(t, s.StoreLog(log))
	if diff := cmp.Diff(&before, log); diff != "" {
		t.Errorf("the caller's entry changed (-want +got):\n%s", diff)
	}
}

// TestCrashInTheFirstStart has the log's folder half made, or made and not recorded.
func TestCrashInTheFirstStart(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"a draft": func(t *testing.T, dir string) { must(t, os.MkdirAll(filepath.Join(dir, logDir+".new", "x"), dirMode)) },
		"a folder": func(t *testing.T, dir string) {
			write := func(_ string, change func() error) error { return change() }
			must(t, wal.Create(wal.Config{Dir: filepath.Join(dir, logDir), Write: write}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			guard := newGuard(cfg.Watchdog, cfg.Logger)
			must(t, createFile(cfg, guard, filepath.Join(cfg.Dir, fileName)))
			leave(t, cfg.Dir)
			s := mustOpen(t, cfg)
			must(t, s.StoreLogs(entries(1, 3)))
			mustClose(t, s)
			s = mustOpen(t, cfg)
			must(t, s.GetLog(3, new(raft.Log)))
		})
	}
}

// TestAppendWithAGapIsRefused, but right behind a snapshot that was installed.
func TestAppendWithAGapIsRefused(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	refused := func(first uint64) {
		t.Helper()
		if s.StoreLogs(entries(first, first+2)) == nil {
			t.Errorf("an append at %d was taken", first)
		}
	}
	refused(2)
	must(t, s.StoreLogs(entries(1, 9)))
	refused(11)
	writeSnapshot(t, s.snapshots, 3, 100, "state")
	refused(101)
	must(t, s.DeleteRange(1, 9))
	refused(100)
	refused(102)
	must(t, s.StoreLogs(entries(101, 103)))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	must(t, s.GetLog(101, new(raft.Log)))
	must(t, s.DeleteRange(101, 103))
	refused(1)
	must(t, s.StoreLogs(entries(101, 103)))
}

// model is a log as slow and obvious as can be.
type model map[uint64]*raft.Log

func (m model) ends() (first, last uint64) {
	for i := range m {
		if first == 0 || i < first {
			first = i
		}
		last = max(last, i)
	}
	return first, last
}

func TestStoreAgainstModel(t *testing.T) {
	tier.Long(t)
	rapid.Check(t, func(rt *rapid.T) {
		f := newFatals()
		cfg := testConfig(t.TempDir(), f)
		s := mustOpen(t, cfg)
		logs, values, snapshot := model{}, map[string]uint64{}, uint64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				_, last := logs.ends()
				if last == 0 {
					last = snapshot
				}
				n := rapid.Uint64Range(1, 8).Draw(rt, "n")
				for _, e := range entries(last+1, last+n) {
					logs[e.Index] = e
				}
				must(t, s.StoreLogs(entries(last+1, last+n)))
			},
			"cut the end": func(rt *rapid.T) {
				first, last := logs.ends()
				from := rapid.Uint64Range(max(1, first), last+1).Draw(rt, "from")
				for i := from; i <= last; i++ {
					delete(logs, i)
				}
				must(t, s.DeleteRange(from, last))
			},
			"compact": func(rt *rapid.T) {
				first, last := logs.ends()
				to := rapid.Uint64Range(first, max(first, last)).Draw(rt, "to")
				if first == 0 || to == last {
					return
				}
				for i := first; i <= to; i++ {
					delete(logs, i)
				}
				must(t, s.DeleteRange(first, to))
			},
			"set": func(rt *rapid.T) {
				k, v := rapid.SampledFrom([]string{"CurrentTerm", "Another"}).Draw(rt, "k"), rapid.Uint64().Draw(rt, "v")
				values[k] = v
				must(t, s.SetUint64([]byte(k), v))
			},
			"reopen": func(*rapid.T) {
				first, _ := logs.ends()
				mustClose(t, s)
				if first > 1 {
					takeSnapshot(t, cfg, 1, first, "state")
					snapshot = first
				}
				s = mustOpen(t, cfg)
			},
			"": func(rt *rapid.T) {
				compare(rt, s, logs, values)
				if errs := f.all(); len(errs) > 0 {
					rt.Fatalf("Fatal was called: %v", errs)
				}
			},
		})
	})
}

func compare(t *rapid.T, s *Store, logs model, values map[string]uint64) {
	first, last := logs.ends()
	gotFirst, err := s.FirstIndex()
	gotLast, err2 := s.LastIndex()
	if gotFirst != first || gotLast != last || err != nil || err2 != nil {
		t.Fatalf("log is %d to %d (%v %v), want %d to %d", gotFirst, gotLast, err, err2, first, last)
	}
	for i := uint64(0); i <= last+2; i++ {
		var got raft.Log
		err := s.GetLog(i, &got)
		if want := logs[i]; want == nil && !errors.Is(err, raft.ErrLogNotFound) || want != nil && (err != nil || !cmp.Equal(want, &got)) {
			t.Fatalf("entry %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	for k, want := range values {
		if got, err := s.GetUint64([]byte(k)); got != want || err != nil {
			t.Fatalf("%s is %d, %v, want %d", k, got, err, want)
		}
	}
}
