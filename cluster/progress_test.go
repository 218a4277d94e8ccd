package cluster

import (
	"testing"
	"time"
)

// TestProgress: only a leader whose entries wait, while a quorum answers its
// heartbeats and not its entries, resigns; and only after 2 s.
func TestProgress(t *testing.T) {
	stuck := glance{commit: 7, last: 8, missing: true, answered: true}
	idle := glance{commit: 7, last: 7, missing: true, answered: true}
	delivered := glance{commit: 7, last: 8, answered: true}
	silent := glance{commit: 7, last: 8, missing: true}
	moved := glance{commit: 8, last: 9, missing: true, answered: true}
	times := func(g glance, n int) []glance {
		var all []glance
		for range n {
			all = append(all, g)
		}
		return all
	}
	tests := []struct {
		name    string
		glances [][]glance
		resigns bool
	}{
		{"stuck for long enough", [][]glance{times(stuck, stuckLooks)}, true},
		{"stuck, not for long enough", [][]glance{times(stuck, stuckLooks-1)}, false},
		{"nothing waits", [][]glance{times(idle, 100)}, false},
		{"a quorum takes the entries, as one that catches up", [][]glance{times(delivered, 100)}, false},
		{"nobody answers anything, as during slow writes", [][]glance{times(silent, 100)}, false},
		{"the commit index moves", [][]glance{times(stuck, stuckLooks-1), {moved}, times(stuck, 1)}, false},
		{"something arrives", [][]glance{times(stuck, stuckLooks-1), {delivered}, times(stuck, stuckLooks-1)}, false},
		{"a slow write in between", [][]glance{times(stuck, stuckLooks-1), times(silent, 5), times(stuck, 1)}, true},
	}
	for _, tt := range tests {
		p, resigns := progress{commit: 7}, false
		for _, glances := range tt.glances {
			for _, g := range glances {
				resigns = p.look(g)
			}
		}
		if resigns != tt.resigns {
			t.Errorf("%s: resigns is %v, want %v", tt.name, resigns, tt.resigns)
		}
	}
	if limit := stuckLooks * progressTick; limit != 2*time.Second {
		t.Errorf("a stuck leader resigns after %v", limit)
	}
}

func TestAbstentionGrowsAndIsForgotten(t *testing.T) {
	var a abstention
	now := time.Unix(1000, 0)
	for _, want := range []time.Duration{minAbstain, 2 * minAbstain, 4 * minAbstain, maxAbstain, maxAbstain} {
		if got := a.next(now); got != want {
			t.Errorf("%v, want %v", got, want)
		}
		now = now.Add(abstainMemory)
	}
	if got := a.next(now.Add(time.Second)); got != minAbstain {
		t.Errorf("%v after a long time, want %v", got, minAbstain)
	}
}
