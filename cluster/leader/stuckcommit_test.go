package leader

import (
	"testing"
	"time"
)

// TestStuckCommit: only a leader whose entries wait, while a quorum answers its
// heartbeats and not its entries, steps down; and only after 2 s.
func TestStuckCommit(t *testing.T) {
	stuck := commitSample{commit: 7, last: 8, missing: true, answered: true}
	idle := commitSample{commit: 7, last: 7, missing: true, answered: true}
	delivered := commitSample{commit: 7, last: 8, answered: true}
	silent := commitSample{commit: 7, last: 8, missing: true}
	moved := commitSample{commit: 8, last: 9, missing: true, answered: true}
	times := func(g commitSample, n int) []commitSample {
		var all []commitSample
		for range n {
			all = append(all, g)
		}
		return all
	}
	tests := []struct {
		name      string
		samples   [][]commitSample
		stepsDown bool
	}{
		{"stuck for long enough", [][]commitSample{times(stuck, maxMisses)}, true},
		{"stuck, not for long enough", [][]commitSample{times(stuck, maxMisses-1)}, false},
		{"nothing waits", [][]commitSample{times(idle, 100)}, false},
		{"a quorum takes the entries, as one that catches up", [][]commitSample{times(delivered, 100)}, false},
		{"nobody answers anything, as during slow writes", [][]commitSample{times(silent, 100)}, false},
		{"the commit index moves", [][]commitSample{times(stuck, maxMisses-1), {moved}, times(stuck, 1)}, false},
		{"something arrives", [][]commitSample{times(stuck, maxMisses-1), {delivered}, times(stuck, maxMisses-1)}, false},
		{"a slow write in between", [][]commitSample{times(stuck, maxMisses-1), times(silent, 5), times(stuck, 1)}, true},
	}
	for _, tt := range tests {
		p, stepsDown := stuckCommit{commit: 7}, false
		for _, samples := range tt.samples {
			for _, g := range samples {
				stepsDown = p.observe(g)
			}
		}
		if stepsDown != tt.stepsDown {
			t.Errorf("%s: steps down is %v, want %v", tt.name, stepsDown, tt.stepsDown)
		}
	}
	if limit := maxMisses * stuckCommitTick; limit != 2*time.Second {
		t.Errorf("a stuck leader steps down after %v", limit)
	}
}

func TestBackoffGrowsAndIsForgotten(t *testing.T) {
	var a campaignBackoff
	now := time.Unix(1000, 0)
	for _, want := range []time.Duration{minBackoff, 2 * minBackoff, 4 * minBackoff, MaxBackoff, MaxBackoff} {
		if got := a.next(now); got != want {
			t.Errorf("%v, want %v", got, want)
		}
		now = now.Add(backoffMemory)
	}
	if got := a.next(now.Add(time.Second)); got != minBackoff {
		t.Errorf("%v after a long time, want %v", got, minBackoff)
	}
}
