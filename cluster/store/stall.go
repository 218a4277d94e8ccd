package store

import (
	"sync"
	"time"
)

// stallTicks is in how many steps the time of a write is counted. No timer runs
// while the process is paused, or its machine is; what was due meanwhile comes once
// when it goes on. So however long a pause is, it counts as one step, and only a disk
// that hangs for all of them is taken for one that does.
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

// watchStall calls stalled if over is not called within limit, pauses of the process
// apart.
func watchStall(limit time.Duration, stalled func()) *stall {
	s := &stall{step: max(limit/stallTicks, 1), stalled: stalled, left: stallTicks}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.step, s.tick)
	return s
}

// tick is one step.
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

// end says that the write is done: stalled is not called any more.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
