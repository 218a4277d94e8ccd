package fsm

import (
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// An entry that a leader built, and that Raft took only when the node led again, is in the
// log behind entries of leaders in between. Its header is older than theirs.

// laterFormat is a format that only tests read.
const laterFormat = raftlog.FormatVersion + 1

// newRaisedLog returns a log of a cluster that writes a later format.
func newRaisedLog(t testing.TB) *testLog {
	t.Helper()
	l := newLog(t)
	l.state = New(Config{MaxFormat: laterFormat})
	m := testMember("A")
	m.LogFormat = laterFormat
	l.mustApplied(l.raw(bootstrapOperation(testCluster, []*raftlogv1.Member{m})))
	l.mustApplied(l.raw(formatRaiseOperation(laterFormat)))
	return l
}

// late encodes an entry as a leader built it: with the first format, an hour ago.
func (l *testLog) late(groups ...raftlog.Group) []byte {
	now := l.now
	defer func() { l.now = now }()
	l.now = now.Add(-time.Hour)
	return l.encode(groups...)
}

// newest encodes an entry as the leader builds it now.
func (l *testLog) newest(groups ...raftlog.Group) []byte {
	var encoded [][]byte
	for _, g := range groups {
		encoded = append(encoded, raftlog.AppendGroup(nil, g))
	}
	header := raftlog.Header{Format: laterFormat, ClusterID: testCluster, TimeUnixNano: l.now.UnixNano()}
	return raftlog.AppendEntry(nil, header, encoded)
}

// applyLate applies an entry that was encoded before.
func (l *testLog) applyLate(entry []byte) []raftlog.GroupResult {
	l.t.Helper()
	l.index++
	results, err := l.state.Apply(l.index, entry)
	if err != nil {
		l.t.Fatal(err)
	}
	return results
}

// TestALateEntryIsJudgedByTheStatesFormat, and not by the format in its header: its effect is the
// same as with the newest header.
func TestALateEntryIsJudgedByTheStatesFormat(t *testing.T) {
	var group raftlog.Group
	for _, o := range []*raftlogv1.Operation{
		opNext("users", 3), opClaimID("users/5"), opHiLo(&raftlogv1.HiLoNext{Tag: "users", Size: 32}), opNext("users", 1),
		opMergeOf(&raftlogv1.Merge{Identities: []*raftlogv1.MergeIdentity{{Name: "users", Last: 9}}}),
	} {
		group.Operations = append(group.Operations, encodeOperation(o))
	}
	do := func(encode func(*testLog, ...raftlog.Group) []byte) (hash uint64, results []*raftlogv1.Result) {
		l := newRaisedLog(t)
		answers := l.applyLate(encode(l, group))
		for i := range group.Operations {
			r := l.result(answers[0], i)
			if h := r.GetHiloNext(); h != nil {
				h.TimeUnixNano = 0
			}
			results = append(results, r)
		}
		_, hash = l.state.Hash()
		return hash, results
	}
	wantHash, want := do((*testLog).newest)
	hash, got := do((*testLog).late)
	diff(t, want, got)
	if hash != wantHash {
		t.Errorf("the late entry leads to state %x, want %x", hash, wantHash)
	}
}

// TestALateEntryOfASettledGroupDoesNothing: its node has sent the group again, to the
// leader in between.
func TestALateEntryOfASettledGroupDoesNothing(t *testing.T) {
	l := newFormedLog(t)
	self := testMember("A")
	group := raftlog.Group{
		Origin: self.GetId(), Session: l.mustApplied(l.raw(announceOperation(self))).GetMember().GetSession(), Sequence: 1,
		Operations: [][]byte{encodeOperation(opNext("users", 1))},
	}
	late := l.late(group)
	again := l.apply(group)
	_, before := l.state.Hash()
	diff(t, again, l.applyLate(late))
	if _, after := l.state.Hash(); after != before {
		t.Errorf("the state was %x and is %x", before, after)
	}
}

// TestALateJoinNeedsATokenThatIsThere: its clock may say that a token is valid that has
// expired since, but not bring back one that was dropped.
func TestALateJoinNeedsATokenThatIsThere(t *testing.T) {
	l := newFormedLog(t)
	token := joinTokenFor(1, time.Minute)
	l.mustApplied(l.do(token))
	l.now = l.now.Add(2 * time.Minute)
	l.mustApplied(l.do(joinTokenFor(2, time.Minute))) // This drops the first token.
	m := testMember("D")
	add := addOperation(&raftlogv1.MemberAdd{Member: m, TokenHash: token.GetJoinTokenCreate().GetTokenHash()})
	results := l.applyLate(l.late(raftlog.Group{Operations: [][]byte{add}}))
	if r := l.result(results[0], 0).GetRefusal(); r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED {
		t.Errorf("a late join by a token that was dropped: %v", r)
	}
}

func joinTokenFor(token byte, valid time.Duration) *raftlogv1.Operation {
	hash := make([]byte, len(tokenHash{}))
	hash[0] = token
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_JoinTokenCreate{JoinTokenCreate: &raftlogv1.JoinTokenCreate{
		TokenHash:  hash,
		ValidNanos: int64(valid),
	}}}
}
