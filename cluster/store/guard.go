package store

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// guard is the store's switch: after the first failure every call fails.
//
// Invariant: an error that fail returned is the answer of every later call, and Fatal was
// called with it before it is returned.
type guard struct {
	watchdog Watchdog
	logger   *slog.Logger
	failure  atomic.Pointer[error]
	// wrote gets the time of each successful write; it may be nil.
	wrote func(took time.Duration)
}

func newGuard(watchdog Watchdog, logger *slog.Logger) *guard {
	return &guard{watchdog: watchdog, logger: logger}
}

func (g *guard) err() error {
	if p := g.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (g *guard) fail(err error) error {
	if !g.failure.CompareAndSwap(nil, &err) {
		return g.err()
	}
	g.logger.Error("the Raft store stops: this node must end", "error", err)
	g.watchdog.Fatal(err)
	return err
}

// write runs one write under the watchdog, and reports it. An error is final: the disk's
// content after a failed fsync is unknown, so a retry proves nothing.
func (g *guard) write(what string, do func() error) error {
	started := time.Now()
	if err := g.watchSlow(func() error { return g.change(what, do) }); err != nil {
		return err
	}
	if g.wrote != nil {
		g.wrote(time.Since(started))
	}
	return nil
}

// watchSlow runs one write, and reports that it is slow while it is.
func (g *guard) watchSlow(write func() error) error {
	w := g.watchdog
	if w.Slowed == nil {
		return write()
	}
	slow := watchStall(w.Slow, func() { w.Slowed(true) })
	err := write()
	if slow.end() {
		w.Slowed(false)
	}
	return err
}

// change is a write that is not reported, since no caller waits for it.
func (g *guard) change(what string, do func() error) error {
	if err := g.err(); err != nil {
		return err
	}
	stall := watchStall(g.watchdog.Limit, func() {
		_ = g.fail(fmt.Errorf("%w: %s took longer than %s", ErrStalled, what, g.watchdog.Limit))
	})
	err := do()
	stall.end()
	if err != nil {
		return g.fail(fmt.Errorf("%w: %s: %w", ErrWrite, what, err))
	}
	// A write that returned late has already stopped the node.
	return g.err()
}

// stallTicks is the number of steps in which the time of a write is counted. No timer
// runs while the process or its machine is paused; the ticks due in that time fire once
// afterwards. So a pause of any length counts as one step, and only a disk that hangs for
// all steps counts as stalled.
const stallTicks = 10

type stall struct {
	step    time.Duration
	stalled func()

	mu    sync.Mutex
	timer *time.Timer
	left  int
	over  bool
}

// watchStall calls stalled if over is not called within limit, not counting pauses of the
// process.
func watchStall(limit time.Duration, stalled func()) *stall {
	s := &stall{step: max(limit/stallTicks, 1), stalled: stalled, left: stallTicks}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.step, s.tick)
	return s
}

func (s *stall) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.left--; s.left > 0 {
		s.timer.Reset(s.step)
		return
	}
	s.over = true
	s.stalled()
}

// end stops the watch: stalled is not called afterwards. It reports whether it was called.
func (s *stall) end() (stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
	return s.left == 0
}
