package store

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
)

// fault is in a store's disk: writes wait for release, if that is set, and then return
// err.
type fault struct {
	release chan struct{}
	err     error
}

func (f *fault) hit() error {
	if f.release != nil {
		<-f.release
	}
	return f.err
}

// faultyBackend has the fault in raft.db.
type faultyBackend struct {
	stableBackend
	*fault
}

func (b faultyBackend) Set(key, value []byte) error {
	return errors.Join(b.hit(), b.stableBackend.Set(key, value))
}

// faultyDisk is a folder with the fault in the syncs of its files.
type faultyDisk struct {
	*os.Root
	*fault
}

func (d faultyDisk) Names() ([]string, error) { return fs.Glob(d.FS(), "*") }
func (d faultyDisk) Sync() error              { return nil }

func (d faultyDisk) Open(name string) (wal.File, error) {
	f, err := d.OpenFile(name, os.O_RDWR, 0)
	return faultyFile{f, d.fault}, err
}

func (d faultyDisk) Create(name string) (wal.File, error) {
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	return faultyFile{f, d.fault}, err
}

type faultyFile struct {
	*os.File
	*fault
}

func (f faultyFile) Sync() error { return f.hit() }

func (f faultyFile) Size() (int64, error) {
	info, err := f.Stat()
	return info.Size(), err
}

// openFaulty opens a new store, whose fault the caller sets afterwards.
func openFaulty(t *testing.T, cfg Config) (*Store, *fault) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	f := &fault{}
	cfg.disk, cfg.segmentBytes = faultyDisk{root, f}, 0 // No segment is prepared meanwhile.
	s := mustOpen(t, cfg)
	s.stable.backend = faultyBackend{s.stable.backend, f}
	return s, f
}

// writes are all the ways to the disk.
var writes = map[string]func(*Store) error{
	"StoreLogs":   func(s *Store) error { return s.StoreLogs(entries(10, 12)) },
	"StoreLog":    func(s *Store) error { return s.StoreLog(entry(10)) },
	"DeleteRange": func(s *Store) error { return s.DeleteRange(1, 3) },
	"cutting":     func(s *Store) error { return s.DeleteRange(7, 9) },
	"Set":         func(s *Store) error { return vote(s, 3, "x") },
	"SetUint64":   func(s *Store) error { return s.SetUint64([]byte("CurrentTerm"), 3) },
}

func TestStalledWriteIsFatal(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			f := newFatals()
			s, b := openFaulty(t, testConfig(t.TempDir(), f))
			must(t, s.StoreLogs(entries(1, 9)))
			// The short limit is for the stall, not for opening and filling the store on a
			// busy machine.
			s.guard.watchdog.Limit = 5 * time.Millisecond
			b.release = make(chan struct{})
			done := make(chan error)
			go func() { done <- write(s) }()
			if err := <-f.ch; !errors.Is(err, ErrStalled) {
				t.Errorf("Fatal was called with %v", err)
			}
			// Reads stop while the write still hangs, and the late write is no success.
			if err := s.GetLog(9, new(raft.Log)); !errors.Is(err, ErrStalled) {
				t.Errorf("read during the stall: %v", err)
			}
			close(b.release)
			if err := <-done; err == nil || s.guard.err() == nil {
				t.Errorf("the late write succeeded")
			}
			if len(f.all()) != 1 {
				t.Errorf("Fatal was called %d times", len(f.all()))
			}
		})
	}
}

func TestFailedWriteIsFatal(t *testing.T) {
	broken := errors.New("input/output error")
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			f := newFatals()
			s, b := openFaulty(t, testConfig(t.TempDir(), f))
			must(t, s.StoreLogs(entries(1, 9)))
			b.err = broken
			if err := write(s); err == nil {
				t.Error("the write succeeded")
			}
			if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], broken) || !errors.Is(errs[0], ErrWrite) {
				t.Errorf("Fatal was called with %v", errs)
			}
			b.err = nil
			if err := write(s); err == nil {
				t.Error("a write after the failed one succeeded")
			}
		})
	}
}
