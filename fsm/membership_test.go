package fsm

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// TestTheMembershipHasTheIndexOfItsLastChange: the clients' view of the members has one number in
// all states, which rises with each of its changes and not otherwise.
func TestTheMembershipHasTheIndexOfItsLastChange(t *testing.T) {
	l := newFormedLog(t)
	member := func(tag string, change func(*raftlogv1.Member)) *raftlogv1.Member {
		m := testMember(tag)
		change(m)
		return m
	}
	same := func(*raftlogv1.Member) {}
	want := l.index // Of the entry that formed the cluster.
	for _, step := range []struct {
		name    string
		op      []byte
		changes bool
	}{
		{"an identity", encodeOperation(opNext("users", 1)), false},
		{"a start", announceOperation(member("A", same)), false},
		{"another gRPC port", announceOperation(member("A", func(m *raftlogv1.Member) { m.GrpcAddress = "a:1" })), false},
		{"another HTTP port", announceOperation(member("A", func(m *raftlogv1.Member) { m.HttpAddress = "a:2" })), true},
		{"the same start again", announceOperation(member("A", func(m *raftlogv1.Member) { m.HttpAddress = "a:2" })), false},
		{"a newcomer", addOperation(&raftlogv1.MemberAdd{Member: member("D", same)}), true},
		{"the same newcomer", addOperation(&raftlogv1.MemberAdd{Member: member("D", same)}), false},
		{"its vote", promoteOperation(nodeNamed("node D")), true},
		{"its vote again", promoteOperation(nodeNamed("node D")), false},
		{"a removal", removeOperation("B", 0), true},
		{"the same removal", removeOperation("B", 0), false},
	} {
		l.mustApplied(l.raw(step.op))
		if step.changes {
			want = l.index
		}
		wantMembership(t, step.name, l.state, want)
		wantMembership(t, step.name+", from a snapshot", restored(t, snapshotOf(t, l.state)), want)
	}
}

// TestARemovalCountsInTheMembershipThatWasJudged: of two at once, also in one log entry,
// the second is refused, whatever it would do; the same one again is not.
func TestARemovalCountsInTheMembershipThatWasJudged(t *testing.T) {
	reason := func(r *raftlogv1.Result) raftlogv1.RefusalReason { return r.GetRefusal().GetReason() }
	const none, changed = raftlogv1.RefusalReason_REFUSAL_REASON_UNSPECIFIED, raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY
	l := newFormedLog(t)
	_, judged := l.state.Membership()
	for _, step := range []struct {
		name string
		op   []byte
		want raftlogv1.RefusalReason
	}{
		{"of another membership", removeOperation("B", judged+1), changed},
		{"of the newest", removeOperation("B", judged), none},
		{"the same again", removeOperation("B", judged), none},
		{"another", removeOperation("C", judged), changed},
		{"one that nobody judged", removeOperation("C", 0), none},
	} {
		if got := reason(l.raw(step.op)); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}

	l = newFormedLog(t)
	_, judged = l.state.Membership()
	entry := l.apply(raftlog.Group{Operations: [][]byte{removeOperation("B", judged), removeOperation("C", judged)}})[0]
	if first, second := reason(l.result(entry, 0)), reason(l.result(entry, 1)); first != none || second != changed {
		t.Errorf("in one entry: %s, %s", first, second)
	}
}

func wantMembership(t *testing.T, when string, s *State, want uint64) {
	t.Helper()
	if _, got := s.Membership(); got != want {
		t.Errorf("%s: the membership is of index %d, want %d", when, got, want)
	}
	if want := hashFromScratch(s.contents); want != s.contents.hash() {
		t.Errorf("%s: hash %x, from scratch %x", when, s.contents.hash(), want)
	}
}

// TestARestoredStateHasNoChangeUnderWay: the next entry of it changes nothing either.
func TestARestoredStateHasNoChangeUnderWay(t *testing.T) {
	l := newFormedLog(t)
	_, want := l.state.Membership()
	l.state = restored(t, snapshotOf(t, l.state))
	l.mustApplied(l.do(opNext("users", 1)))
	wantMembership(t, "after a snapshot", l.state, want)
}

// TestARecoveryChangesTheMembership: clients of the old cluster hear who is left.
func TestARecoveryChangesTheMembership(t *testing.T) {
	l := newFormedLog(t)
	_, before := l.state.Membership()
	l.state.Skip(l.index + 5) // Survivors need not have seen the same end of the log.
	if _, err := l.state.Recover(Recovery{Keep: []string{"A"}}); err != nil {
		t.Fatal(err)
	}
	wantMembership(t, "after the recovery", l.state, before+1)
}

// TestAllMembersFitIntoAMessage between nodes, removed ones too, with the longest addresses.
func TestAllMembersFitIntoAMessage(t *testing.T) {
	address := strings.Repeat("a", maxAddressBytes)
	largest := &raftlogv1.Member{
		Id: make([]byte, nodeid.Size), Tag: "ABCD", GrpcAddress: address, RaftAddress: address, HttpAddress: address,
		Watcher: true, Voter: true, Removed: true, LogFormat: math.MaxUint32, Starts: math.MaxUint64, Process: 1,
	}
	if size := maxMembers * (proto.Size(largest) + 4); size > raftlog.MaxMessageBytes {
		t.Errorf("%d members have %d bytes", maxMembers, size)
	}
}
