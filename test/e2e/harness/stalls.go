package harness

import (
	"sync"
	"testing"
	"time"
)

const (
	// stallTick is how often the meter looks at the clock.
	stallTick = 2 * time.Millisecond
	// stallMin is the lateness that counts: less is a scheduler's daily business.
	stallMin = 8 * time.Millisecond
)

// Stalls measures for how long this machine did not let a ready process run.
//
// The promises in milliseconds that the tests check hold for a machine that
// runs the nodes. On one that is busy with something else, say with the tests of
// other packages, a bound is widened by what was measured in its time: a test
// then still fails when the nodes are late, and not when the machine is.
type Stalls struct {
	stop chan struct{}
	done sync.WaitGroup
	// watch is told of each stall; may be nil.
	watch func(late time.Duration)

	mu   sync.Mutex
	seen []stall
}

type stall struct {
	end  time.Time
	late time.Duration
}

// MeasureStalls starts a meter that runs until the test ends.
func MeasureStalls(t testing.TB) *Stalls { return measureStalls(t, nil) }

func measureStalls(t testing.TB, watch func(late time.Duration)) *Stalls {
	t.Helper()
	s := &Stalls{stop: make(chan struct{}), watch: watch}
	s.done.Go(s.run)
	t.Cleanup(func() {
		close(s.stop)
		s.done.Wait()
	})
	return s
}

func (s *Stalls) run() {
	timer := time.NewTimer(stallTick)
	defer timer.Stop()
	for {
		begin := time.Now()
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		if late := time.Since(begin) - stallTick; late > stallMin {
			s.mu.Lock()
			s.seen = append(s.seen, stall{end: time.Now(), late: late})
			s.mu.Unlock()
			if s.watch != nil {
				s.watch(late)
			}
		}
		timer.Reset(stallTick)
	}
}

// Between is how long nothing ran between two moments, in sum.
func (s *Stalls) Between(from, to time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	for _, seen := range s.seen {
		if seen.end.After(from) && seen.end.Add(-seen.late).Before(to) {
			sum += seen.late
		}
	}
	return sum
}
