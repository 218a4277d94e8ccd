package store

import (
	"sync"
	"time"
)

// stallTicks is the number of steps in which the time of a write is counted. No timer
// runs while the process or its machine is paused; the ticks due in that time fire once
// afterwards. So a pause of any length counts as one step, and only a disk that hangs for
// all steps counts as stalled.
const stallTicks = 10

// stall counts how long one write takes.
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
