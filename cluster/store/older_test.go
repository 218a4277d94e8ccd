package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// setBack keeps what a path in dir holds, and returns what puts it back.
func setBack(t *testing.T, dir, name string) (putBack func()) {
	t.Helper()
	path, kept := filepath.Join(dir, name), filepath.Join(t.TempDir(), name)
	must(t, os.CopyFS(filepath.Dir(kept), os.DirFS(dir)))
	return func() {
		must(t, os.RemoveAll(path))
		info, err := os.Stat(kept)
		must(t, err)
		if info.IsDir() {
			must(t, os.CopyFS(path, os.DirFS(kept)))
			return
		}
		content, err := os.ReadFile(kept)
		must(t, err)
		must(t, os.WriteFile(path, content, fileMode))
	}
}

// TestOlderRaftDBIsNoticed: an older copy of raft.db alone has votes forgotten, with every
// checksum right.
func TestOlderRaftDBIsNoticed(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	fill(t, s)
	mustClose(t, s)
	putBack := setBack(t, cfg.Dir, fileName)
	s = mustOpen(t, cfg)
	must(t, vote(s, 6, "x"))
	mustClose(t, s)
	putBack()
	if _, err := Open(cfg); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open: %v", err)
	}
}

// TestRaftDBLostBesideItsMark: a new one in its place would have no votes.
func TestRaftDBLostBesideItsMark(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	mustClose(t, mustOpen(t, cfg))
	must(t, os.Remove(filepath.Join(cfg.Dir, fileName)))
	if _, err := Open(cfg); !errors.Is(err, ErrMissing) {
		t.Errorf("Open: %v", err)
	}
}

// TestOlderSnapshotsAreNoticed: a folder of snapshots without the newest, beside a
// log that would reach back far enough.
func TestOlderSnapshotsAreNoticed(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	fill(t, s)
	snapshot(t, s, 4)
	putBack := setBack(t, cfg.Dir, snapshotDir)
	snapshot(t, s, 8)
	mustClose(t, s)
	mustClose(t, mustOpen(t, cfg))
	putBack()
	if _, err := Open(cfg); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open: %v", err)
	}
}

// TestOlderLogFolderIsNoticed: with its own mark, which lies within.
func TestOlderLogFolderIsNoticed(t *testing.T) {
	for what, change := range map[string]func(*Store) error{
		"entries":    func(s *Store) error { return s.StoreLogs(entries(10, 12)) },
		"a deletion": func(s *Store) error { return s.DeleteRange(8, 9) },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			s := mustOpen(t, cfg)
			fill(t, s)
			mustClose(t, s)
			putBack := setBack(t, cfg.Dir, logDir)
			s = mustOpen(t, cfg)
			must(t, change(s))
			mustClose(t, s)
			mustClose(t, mustOpen(t, cfg))
			putBack()
			if _, err := Open(cfg); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestACancelledSnapshotIsNotDemanded at the next start.
func TestACancelledSnapshotIsNotDemanded(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	fill(t, s)
	snapshot(t, s, 4)
	sink := begin(t, s, 8)
	must(t, sink.Cancel())
	must(t, sink.Close())
	mustClose(t, s)
	mustClose(t, mustOpen(t, cfg))
}

func begin(t *testing.T, s *Store, index uint64) raft.SnapshotSink {
	t.Helper()
	_, transport := raft.NewInmemTransport("")
	t.Cleanup(func() { must(t, transport.Close()) })
	sink, err := s.Snapshots().Create(raft.SnapshotVersionMax, index, 1, raft.Configuration{}, 1, transport)
	must(t, err)
	_, err = sink.Write([]byte("state"))
	must(t, err)
	return sink
}

func snapshot(t *testing.T, s *Store, index uint64) {
	t.Helper()
	must(t, begin(t, s, index).Close())
}
