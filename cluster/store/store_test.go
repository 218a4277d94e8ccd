package store

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/test/tier"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	existing := func(t *testing.T) string {
		dir := t.TempDir()
		s := mustOpen(t, testConfig(dir, newFatals()))
		must(t, s.StoreLogs(entries(1, 20)))
		mustClose(t, s)
		return dir
	}
	for _, c := range []struct {
		name   string
		dir    func(*testing.T) string
		change func(*testing.T, *Config)
		want   error
	}{
		{"another node's file", existing, func(_ *testing.T, c *Config) { c.NodeID = "another" }, ErrForeign},
		{
			"a missing file that must exist", func(t *testing.T) string { return t.TempDir() },
			func(_ *testing.T, c *Config) { c.MustExist = true }, ErrMissing,
		},
		{"a directory in use", existing, func(t *testing.T, c *Config) { mustOpen(t, *c) }, ErrInUse},
		{"a file cut short", existing, func(t *testing.T, c *Config) {
			must(t, os.Truncate(filepath.Join(c.Dir, fileName), 3*4096))
		}, ErrCorrupt},
		{"an empty file", existing, func(t *testing.T, c *Config) {
			must(t, os.Truncate(filepath.Join(c.Dir, fileName), 0))
		}, ErrCorrupt},
		{"a file whose owner was lost", existing, func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketConf).Delete(keyNodeID) })
		}, ErrCorrupt},
		{"a log whose last entry was lost", existing, func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Delete(logKey(20)) })
		}, ErrCorrupt},
		{"a log whose tail record was lost", existing, func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Delete(logKey(math.MaxUint64)) })
		}, ErrCorrupt},
		{"a log with a hole above the snapshot", existing, func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).Delete(logKey(7)) })
		}, ErrCorrupt},
		{"entries that changed places", existing, func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucketLogs)
				return b.Put(logKey(7), append([]byte(nil), b.Get(logKey(8))...))
			})
		}, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(c.dir(t), newFatals())
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
	forKinds(t, checkWhatWasWrittenIsReadAfterReopening)
}

func checkWhatWasWrittenIsReadAfterReopening(t *testing.T, kind LogKind) {
	cfg := testConfigOf(kind, t.TempDir(), newFatals())
	cfg.noSync = false
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 30)))
	must(t, s.DeleteRange(1, 4))
	must(t, s.DeleteRange(29, 30))
	must(t, s.SetUint64([]byte("CurrentTerm"), 7))
	must(t, s.Set([]byte("LastVoteCand"), []byte("b")))
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
	forKinds(t, checkMissingIsSaidAsTheLibraryExpects)
}

func checkMissingIsSaidAsTheLibraryExpects(t *testing.T, kind LogKind) {
	s := mustOpen(t, testConfigOf(kind, t.TempDir(), newFatals()))
	if _, err := s.GetUint64([]byte("CurrentTerm")); err == nil || err.Error() != "not found" {
		t.Errorf("missing stable value: %v", err)
	}
	if err := s.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("missing entry: %v", err)
	}
	if err := s.GetLog(math.MaxUint64, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("the tail record must not be seen: %v", err)
	}
	first, err := s.FirstIndex()
	last, err2 := s.LastIndex()
	if first != 0 || last != 0 || err != nil || err2 != nil {
		t.Errorf("empty log is %d to %d, %v %v", first, last, err, err2)
	}
}

func TestChecksumIsInvisible(t *testing.T) { forKinds(t, checkChecksumIsInvisible) }

func checkChecksumIsInvisible(t *testing.T, kind LogKind) {
	s := mustOpen(t, testConfigOf(kind, t.TempDir(), newFatals()))
	log := entry(1)
	log.AppendedAt = time.Unix(5, 6).In(time.FixedZone("x", 3600))
	before := *log
	must(t, s.StoreLog(log))
	if diff := cmp.Diff(&before, log); diff != "" {
		t.Errorf("the caller's entry changed (-want +got):\n%s", diff)
	}
}

func TestUnfinishedDeletionIsFinished(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 9)))
	// The crash comes between the tail record and the deletion.
	must(t, s.log.(*checkedLog).writeTail(5))
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if last, err := s.LastIndex(); last != 5 || err != nil {
		t.Errorf("last is %d, %v", last, err)
	}
	if err := s.GetLog(6, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry 6: %v", err)
	}
	must(t, s.StoreLogs(entries(6, 8)))
}

// TestAppendWithAGapIsRefused, but right behind a snapshot that was installed.
func TestAppendWithAGapIsRefused(t *testing.T) { forKinds(t, checkAppendWithAGapIsRefused) }

func checkAppendWithAGapIsRefused(t *testing.T, kind LogKind) {
	cfg := testConfigOf(kind, t.TempDir(), newFatals())
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
	writeSnapshot(t, s.Snapshots(), 3, 100, "state")
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

// TestHoleWithoutSnapshotIsDamage: earlier versions left one in raft.db below the
// newest snapshot.
func TestHoleWithoutSnapshotIsDamage(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 9)))
	must(t, s.backend.StoreLogs([]*raft.Log{withChecksum(entry(101)), tailRecord(101)}))
	mustClose(t, s)
	if _, err := Open(cfg); !errors.Is(err, ErrCorrupt) {
		t.Errorf("hole without snapshot: %v", err)
	}
	takeSnapshot(t, cfg, 3, 100, "state")
	s = mustOpen(t, cfg)
	must(t, s.GetLog(101, new(raft.Log)))
	must(t, s.GetLog(9, new(raft.Log)))
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
	forKinds(t, checkStoreAgainstModel)
}

func checkStoreAgainstModel(t *testing.T, kind LogKind) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFatals()
		cfg := testConfigOf(kind, t.TempDir(), f)
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
