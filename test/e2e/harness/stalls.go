package harness

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// stallTick is how often the meter looks at the clock.
	stallTick = 2 * time.Millisecond
	// stallMin is the lateness that counts: less is a scheduler's daily business.
	stallMin = 8 * time.Millisecond
	// syncEvery is how often the meter writes to the disk, and slowSync how long a
	// write takes that counts.
	syncEvery = 20 * time.Millisecond
	slowSync  = 50 * time.Millisecond
)

// Stalls measures for how long this machine did not let a ready process run, or a
// write get to the disk.
//
// The promises in milliseconds that the tests check hold for a machine that
// runs the nodes. On one that is busy with something else, say with the tests of
// other packages, a bound is widened by what was measured in its time: a test
// then still fails when the nodes are late, and not when the machine is.
type Stalls struct {
	stop chan struct{}
	done sync.WaitGroup
	// watch gets each stall; may be nil.
	watch func(late time.Duration)

	mu   sync.Mutex
	seen []stall
}

type stall struct {
	end  time.Time
	late time.Duration
}

func (s stall) begin() time.Time { return s.end.Add(-s.late) }

// MeasureStalls starts a meter that runs until the test ends.
func MeasureStalls(t testing.TB) *Stalls { return measureStalls(t, nil) }

func measureStalls(t testing.TB, watch func(late time.Duration)) *Stalls {
	t.Helper()
	s := &Stalls{stop: make(chan struct{}), watch: watch}
	s.done.Go(s.run)
	s.done.Go(func() { s.runDisk(t, filepath.Join(t.TempDir(), "stalls")) })
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
			s.add(late)
		}
		timer.Reset(stallTick)
	}
}

// runDisk writes to a file, as the nodes do to theirs.
func (s *Stalls) runDisk(t testing.TB, name string) {
	file, err := os.Create(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		begin := time.Now()
		_, err := file.WriteAt([]byte(begin.String()), 0)
		if err = errors.Join(err, file.Sync()); err != nil {
			t.Error(err)
			return
		}
		if took := time.Since(begin); took > slowSync {
			s.add(took)
		}
	}
}

func (s *Stalls) add(late time.Duration) {
	s.mu.Lock()
	s.seen = append(s.seen, stall{end: time.Now(), late: late})
	s.mu.Unlock()
	if s.watch != nil {
		s.watch(late)
	}
}

// between returns the stalls that touch the time between two moments, by their
// beginning.
func (s *Stalls) between(from, to time.Time) []stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []stall
	for _, seen := range s.seen {
		if seen.end.After(from) && seen.begin().Before(to) {
			found = append(found, seen)
		}
	}
	slices.SortFunc(found, func(a, b stall) int { return a.begin().Compare(b.begin()) })
	return found
}

// Between is how long nothing ran, or nothing got to the disk, between two moments,
// in sum.
func (s *Stalls) Between(from, to time.Time) time.Duration {
	var sum time.Duration
	var end time.Time
	for _, seen := range s.between(from, to) {
		if seen.end.After(end) {
			sum += seen.end.Sub(latest(seen.begin(), end))
			end = seen.end
		}
	}
	return sum
}

// Longest is the longest stall between two moments.
func (s *Stalls) Longest(from, to time.Time) time.Duration {
	var longest time.Duration
	for _, seen := range s.between(from, to) {
		longest = max(longest, seen.late)
	}
	return longest
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
