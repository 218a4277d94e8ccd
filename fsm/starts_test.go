package fsm

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAnAnnouncementThatHasGoneBackwardsIsRefused: its node's directory was set back.
func TestAnAnnouncementThatHasGoneBackwardsIsRefused(t *testing.T) {
	l := newFormedLog(t)
	says := func(starts, process uint64, trusted bool) *raftlogv1.Result {
		m := testMember("A")
		m.Starts, m.Process, m.TrustData = starts, process, trusted
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
	for name, result := range map[string]*raftlogv1.Result{
		"a start before": says(5, 3, false), "the same start in another process": says(6, 3, false), "no number": says(0, 0, false),
	} {
		if result.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK {
			t.Errorf("%s: %v", name, result)
		}
	}
	m := l.mustApplied(says(3, 4, true)).GetMember().GetMember() // Its operator trusts it.
	if m.GetStarts() != 3 || m.GetTrustData() {
		t.Errorf("the member is %v", m)
	}
	l.mustApplied(says(4, 5, false))
}
