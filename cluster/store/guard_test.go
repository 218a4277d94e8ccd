package store

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/boltfile"
)

// faulty is a backend whose writes wait for release, if that is set, and then
// return err.
type faulty struct {
	*raft.InmemStore
	release chan struct{}
	err     error
}

func (f *faulty) Close() error { return nil }

func (f *faulty) wait() error {
	if f.release != nil {
		<-f.release
	}
	return f.err
}

func (f *faulty) StoreLogs(logs []*raft.Log) error {
	return errors.Join(f.wait(), f.InmemStore.StoreLogs(logs))
}

func (f *faulty) Set(key, value []byte) error {
	return errors.Join(f.wait(), f.InmemStore.Set(key, value))
}

func (f *faulty) SetAll(pairs []pair) error {
	return errors.Join(f.wait(), inmemBackend{f.InmemStore}.SetAll(pairs))
}

func (f *faulty) DeleteRange(first, last uint64) error {
	return errors.Join(f.wait(), f.InmemStore.DeleteRange(first, last))
}

// inmemLog hides the tail record's index from InmemStore's idea of the last one.
type inmemBackend struct{ *raft.InmemStore }

func (inmemBackend) Close() error { return nil }

func (b inmemBackend) SetAll(pairs []pair) (err error) {
	for _, p := range pairs {
		err = errors.Join(err, b.Set(p.key, p.value))
	}
	return err
}

// openOn puts a store on a backend in memory.
func openOn(t *testing.T, cfg Config, inmem *raft.InmemStore) *Store {
	t.Helper()
	return openOnBackend(t, cfg, inmemBackend{inmem})
}

func openOnBackend(t *testing.T, cfg Config, b backend) *Store {
	t.Helper()
	cfg, err := cfg.withDefaults()
	must(t, err)
	guard := newGuard(cfg.Watchdog, cfg.Logger)
	snapshots, err := openSnapshots(cfg, guard)
	must(t, err)
	must(t, newCheckedLog(b, guard).writeTail(0))
	must(t, b.Set(keyNodeID, valueWithChecksum(keyNodeID, []byte(cfg.NodeID))))
	s, err := newStore(cfg, guard, &file{backend: b}, snapshots)
	must(t, err)
	return s
}

// writes are all the ways to the disk.
var writes = map[string]func(*Store) error{
	"StoreLogs":   func(s *Store) error { return s.StoreLogs(entries(10, 12)) },
	"StoreLog":    func(s *Store) error { return s.StoreLog(entry(10)) },
	"DeleteRange": func(s *Store) error { return s.DeleteRange(1, 3) },
	"cutting":     func(s *Store) error { return s.DeleteRange(7, 9) },
	"Set":         func(s *Store) error { return s.Set([]byte("LastVoteCand"), []byte("x")) },
	"SetUint64":   func(s *Store) error { return s.SetUint64([]byte("CurrentTerm"), 3) },
}

func TestStalledWriteIsFatal(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			f, b := newFatals(), &faulty{InmemStore: raft.NewInmemStore()}
			cfg := testConfig(t.TempDir(), f)
			// The short limit is for the stall, not for opening and filling the store on a
			// busy machine.
			cfg.Watchdog.Limit = time.Minute
			s := openOnBackend(t, cfg, b)
			must(t, s.StoreLogs(entries(1, 9)))
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
			if err := <-done; err == nil || s.Err() == nil {
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
			f, b := newFatals(), &faulty{InmemStore: raft.NewInmemStore()}
			s := openOnBackend(t, testConfig(t.TempDir(), f), b)
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

func TestPanicOfTheBackendIsDamage(t *testing.T) {
	if err := boltfile.Trap("", ErrCorrupt, func() error { panic("page 7: bad magic") }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}
