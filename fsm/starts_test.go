package fsm

import (
	"fmt"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAnAnnouncementThatHasGoneBackwardsIsRefused: its node's directory was set back.
// Nodes of format 2 take it.
func TestAnAnnouncementThatHasGoneBackwardsIsRefused(t *testing.T) {
	for _, format := range []uint32{MergeFormat, StrictFormat} {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			l := newLogOf(t, format)
			says := func(starts, process uint64, trusted bool) *raftlogv1.Result {
				m := testMember("A")
				m.LogFormat, m.Starts, m.Process, m.TrustData = StrictFormat, starts, process, trusted
				return l.raw(announceOperation(m))
			}
			l.mustApplied(says(4, 1, false))
			l.mustApplied(says(4, 1, false)) // Another session of the same process.
			l.mustApplied(says(6, 2, false)) // A start before it did not get that far.
			snapshot := restored(t, snapshotOf(t, l.state))
			_, want := l.state.Hash()
			if _, got := snapshot.Hash(); got != want {
				t.Error("a restored state has another hash")
			}
			l.state = snapshot
			strict := format >= StrictFormat
			for name, result := range map[string]*raftlogv1.Result{
				"a start before": says(5, 3, false), "the same start in another process": says(6, 3, false), "no number": says(0, 0, false),
			} {
				if refused := result.GetRefusal().GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK; refused != strict {
					t.Errorf("%s: %v", name, result)
				}
			}
			m := l.mustApplied(says(3, 4, true)).GetMember().GetMember() // Its operator vouches for it.
			if want := map[bool]uint64{true: 3}[strict]; m.GetStarts() != want || m.GetTrustData() {
				t.Errorf("the member is %v", m)
			}
			l.mustApplied(says(4, 5, false))
		})
	}
}
