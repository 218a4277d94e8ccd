package harness

import (
	"testing"
	"time"
)

const (
	// HalfLease is half of a leader's lease. A machine that stood still for so long
	// may have had an election, or a leadership transfer that failed, for that reason alone.
	HalfLease = 100 * time.Millisecond
	// steadyTries is how often a part of a test is run on such a machine.
	steadyTries = 4
)

// Judge runs a part of a test that must not fail on a machine that runs the nodes.
// If it fails and the machine stood still for half of a lease meanwhile, it is run
// again, a few times; otherwise the test fails.
func (s *Stalls) Judge(t testing.TB, part func() error) {
	t.Helper()
	for try := 1; ; try++ {
		begin := time.Now()
		err := part()
		if err == nil {
			return
		}
		still := s.Longest(begin, time.Now())
		if still < HalfLease || try == steadyTries {
			t.Error(err)
			return
		}
		t.Logf("again, because the machine stood still for %v: %v", still, err)
	}
}
