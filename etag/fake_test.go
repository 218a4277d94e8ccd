package etag_test

import (
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/etag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDisk = errors.New("disk on fire")

// disk is the state that survives a crash.
type disk struct {
	mu     sync.Mutex
	state  etag.Stored
	writes int
}

// fakeStore is an etag.Store over a disk. A write first lands in a cache, which
// a crash drops; only the sync at its end makes it durable.
type fakeStore struct {
	disk *disk
	// beforeSync, if set, runs between write and sync. An error from it is the sync's
	// error; kept reports whether the write reached the disk anyway.
	beforeSync func() (kept bool, err error)
	calls      int
	failed     bool
	closed     bool
	misused    string
}

func (s *fakeStore) Load() (etag.Stored, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return clone(s.disk.state), nil
}

func clone(state etag.Stored) etag.Stored {
	state.Databases = maps.Clone(state.Databases)
	return state
}

func (s *fakeStore) Reserve(r etag.Reservation) error {
	return s.write(func(state *etag.Stored) {
		state.Clean = false
		if r.Start > 0 {
			state.Start = r.Start
		}
		maps.Copy(state.Databases, r.Limits)
	})
}

func (s *fakeStore) Stop(last map[string]uint64) error {
	return s.write(func(state *etag.Stored) {
		state.Clean = true
		maps.Copy(state.Databases, last)
	})
}

func (s *fakeStore) write(change func(*etag.Stored)) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.failed || s.closed {
		s.misused = "a write after a failed one, or after Close"
	}
	cache := clone(s.disk.state)
	if cache.Databases == nil {
		cache.Databases = make(map[string]uint64)
	}
	change(&cache)
	s.calls++
	kept, err := true, error(nil)
	if s.beforeSync != nil {
		s.disk.mu.Unlock()
		kept, err = s.beforeSync()
		s.disk.mu.Lock()
	}
	if kept {
		s.disk.state = cache
		s.disk.writes++
	}
	s.failed = err != nil
	return err
}

func (s *fakeStore) Close() error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.closed = true
	return nil
}

func (d *disk) read() etag.Stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	return clone(d.state)
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func open(t fataler, s etag.Store, cfg etag.Config) *etag.Counters {
	t.Helper()
	if cfg.MaxDatabases == nil {
		cfg.MaxDatabases = func() int { return 10_000 }
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := etag.Open(s, cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return c
}

// openOn starts counters on d and closes them when the test ends.
func openOn(t *testing.T, d *disk, cfg etag.Config) *etag.Counters {
	t.Helper()
	c := open(t, &fakeStore{disk: d}, cfg)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func next(t fataler, c *etag.Counters, database string) uint64 {
	t.Helper()
	v, err := c.Next(database)
	if err != nil {
		t.Fatalf("Next(%q): %v", database, err)
	}
	return v
}

func closeCleanly(t fataler, c *etag.Counters) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// eventually polls until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
