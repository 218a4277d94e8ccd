package leader

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestLeadershipReturnsByPriority is a table of when leadership goes to whom. Leadership is
// looked at each second.
func TestLeadershipReturnsByPriority(t *testing.T) {
	type at struct {
		second int
		to     raft.ServerID
	}
	voter := func(id string, priority uint32) transferTarget {
		return transferTarget{server: raft.Server{ID: raft.ServerID(id)}, priority: priority, applied: 7}
	}
	always := func(all ...transferTarget) func(int) []transferTarget {
		return func(int) []transferTarget { return all }
	}
	behind := voter("c", 3)
	behind.behind = nearEnough + 1
	slow := voter("c", 3)
	slow.slow = true
	further := voter("b", 2)
	further.applied++
	tests := []struct {
		name    string
		own     uint32
		all     func(second int) []transferTarget
		seconds int
		want    []at
	}{
		{"all are equal", 1, always(voter("b", 1), voter("c", 1)), 60, nil},
		{"none is greater", 2, always(voter("b", 1), voter("c", 0)), 60, nil},
		{"the greatest, once it was fit for a while", 1, always(voter("b", 2), voter("c", 3)), 6, []at{{5, "c"}}},
		{"the furthest of the greatest", 1, always(voter("a", 2), further, voter("c", 2)), 6, []at{{5, "b"}}},
		{"the greatest is behind", 1, always(voter("b", 2), behind), 6, []at{{5, "b"}}},
		{"the greatest has a slow disk", 1, always(voter("b", 2), slow), 6, []at{{5, "b"}}},
		{
			"it does not keep leadership, and is offered it more and more seldom", 1, always(voter("b", 2)), 120,
			[]at{{5, "b"}, {15, "b"}, {35, "b"}, {75, "b"}},
		},
		{"a node that shall not lead waits less", 0, always(voter("b", 1)), 10, []at{{2, "b"}, {7, "b"}}},
		{"a node that shall not lead leaves a voter alone that stops", 0, func(second int) []transferTarget {
			if second < 2 {
				return []transferTarget{voter("b", 1)}
			}
			return nil
		}, 10, nil},
		{"a node that shall not lead, and nobody else can", 0, always(voter("b", 0), slow), 60, nil},
		{"it comes and goes", 1, func(second int) []transferTarget {
			if second%5 == 4 {
				return nil
			}
			return []transferTarget{voter("b", 2)}
		}, 60, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r priorityTransfers
			var got []at
			for second := range tt.seconds {
				now := time.Unix(int64(second), 0)
				if best, found := r.choose(now, tt.own, tt.all(second)); found {
					r.add(now, tt.own, best.server.ID)
					got = append(got, at{second, best.server.ID})
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
