package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"github.com/idnode/idnode/cluster/store/wal"
)

func walConfig(t *testing.T) Config {
	t.Helper()
	return testConfigOf(LogWAL, t.TempDir(), newFatals())
}

func TestDirectoryKeepsItsKindOfLog(t *testing.T) {
	other := map[LogKind]LogKind{LogBolt: LogWAL, LogWAL: LogBolt}
	forKinds(t, func(t *testing.T, kind LogKind) {
		cfg := testConfigOf(kind, t.TempDir(), newFatals())
		s := mustOpen(t, cfg)
		must(t, s.StoreLogs(entries(1, 9)))
		mustClose(t, s)
		wrong := cfg
		wrong.Log = other[kind]
		_, err := Open(wrong)
		if !errors.Is(err, ErrLogKind) || !strings.Contains(err.Error(), "start with log-store "+string(kind)) {
			t.Errorf("as %s: %v", wrong.Log, err)
		}
		cfg.Log = LogAuto
		s = mustOpen(t, cfg)
		must(t, s.GetLog(9, new(raft.Log)))
	})
	cfg := walConfig(t)
	cfg.Log = LogAuto
	mustClose(t, mustOpen(t, cfg))
	cfg.Log = LogWAL
	mustClose(t, mustOpen(t, cfg))
	cfg.Log = "paper"
	if _, err := Open(cfg); err == nil {
		t.Error("a log of paper was opened")
	}
}

func TestOpenRefusesWAL(t *testing.T) {
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
		{"a directory in use", func(t *testing.T, c *Config) { mustOpen(t, *c) }, ErrInUse},
		{"no folder of the log", func(t *testing.T, c *Config) {
			must(t, os.RemoveAll(filepath.Join(c.Dir, logDir)))
		}, ErrCorrupt},
		{"no mark", func(t *testing.T, c *Config) { must(t, os.Remove(inLog(c, "mark"))) }, ErrCorrupt},
		{"no segment", func(t *testing.T, c *Config) { must(t, os.Remove(inLog(c, "*.log"))) }, ErrCorrupt},
		{"a segment cut short", func(t *testing.T, c *Config) { must(t, os.Truncate(inLog(c, "*.log"), 1000)) }, ErrCorrupt},
		{"the kind was lost", func(t *testing.T, c *Config) {
			edit(t, c.Dir, func(tx *bbolt.Tx) error { return tx.Bucket(bucketConf).Delete(keyLogKind) })
			c.Log = LogAuto
		}, ErrCorrupt},
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
			cfg := walConfig(t)
			s := mustOpen(t, cfg)
			must(t, s.StoreLogs(entries(1, 20)))
			mustClose(t, s)
			c.change(t, &cfg)
			wantOpen(t, cfg, c.want)
		})
	}
}

// TestCrashInTheFirstStart has the folder half made, or made and not recorded.
func TestCrashInTheFirstStart(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"a draft": func(t *testing.T, dir string) { must(t, os.MkdirAll(filepath.Join(dir, logDir+".new", "x"), dirMode)) },
		"a folder": func(t *testing.T, dir string) {
			must(t, wal.Create(wal.Config{Dir: filepath.Join(dir, logDir), Write: always}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := walConfig(t)
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

func always(_ string, change func() error) error { return change() }

func TestDamageWhileRunningStopsTheWAL(t *testing.T) {
	cfg := walConfig(t)
	f := newFatals()
	cfg.Watchdog.Fatal, cfg.CacheEntries = f.fatal, 1
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 9)))
	segments, err := filepath.Glob(filepath.Join(cfg.Dir, logDir, "*.log"))
	must(t, err)
	must(t, os.Truncate(segments[0], 100)) // behind the store's back
	if err := s.GetLog(3, new(raft.Log)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("lost entry: %v", err)
	}
	if err := s.StoreLogs(entries(10, 10)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a write after damage: %v", err)
	}
	if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], ErrCorrupt) {
		t.Errorf("Fatal was called with %v", errs)
	}
}

// TestFailedWriteOfTheWALIsFinal closes the log's files under the store.
func TestFailedWriteOfTheWALIsFinal(t *testing.T) {
	for _, name := range []string{"StoreLogs", "StoreLog", "DeleteRange", "cutting"} {
		t.Run(name, func(t *testing.T) {
			cfg := walConfig(t)
			f := newFatals()
			cfg.Watchdog.Fatal = f.fatal
			s := mustOpen(t, cfg)
			must(t, s.StoreLogs(entries(1, 9)))
			must(t, s.log.(*walLog).log.Close())
			for range 2 {
				if err := writes[name](s); !errors.Is(err, ErrWrite) {
					t.Errorf("the write: %v", err)
				}
			}
			if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], ErrWrite) {
				t.Errorf("Fatal was called with %v", errs)
			}
			if err := s.Set([]byte("CurrentTerm"), []byte("x")); !errors.Is(err, ErrWrite) {
				t.Errorf("a vote after it: %v", err)
			}
		})
	}
}
