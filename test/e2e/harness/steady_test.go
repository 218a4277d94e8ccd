package harness

import (
	"errors"
	"testing"
	"time"
)

// verdict is a test that only notes whether it failed.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper()             {}
func (v *verdict) Logf(string, ...any) {}
func (v *verdict) Error(...any)        { v.failed = true }

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name string
		// still is how long the machine stands still in each try, and bad how many
		// of the first tries fail.
		still     time.Duration
		bad, runs int
		failed    bool
	}{
		{"a good one", HalfLease, 0, 1, false},
		{"a defect", HalfLease - 1, 1, 1, true},
		{"a stall", HalfLease, 1, 2, false},
		{"a defect on a machine that always stalls", HalfLease, 99, steadyTries, true},
	} {
		var s Stalls
		v, runs := &verdict{TB: t}, 0
		s.Judge(v, func() error {
			s.add(tt.still)
			if runs++; runs <= tt.bad {
				return errors.New("bad")
			}
			return nil
		})
		if runs != tt.runs || v.failed != tt.failed {
			t.Errorf("%s: %d runs, failed %t", tt.name, runs, v.failed)
		}
	}
}
