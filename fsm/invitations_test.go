package fsm

import (
	"bytes"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAJoinBelowStrictFormatIgnoresItsToken, whatever its bytes: nodes of format 2 do
// not know the field, and states must not differ.
func TestAJoinBelowStrictFormatIgnoresItsToken(t *testing.T) {
	join := func(hash []byte) uint64 {
		l := newLogOf(t, MergeFormat)
		join := &raftlogv1.MemberJoin{Member: testMember("D"), TokenHash: hash}
		join.Member.LogFormat = StrictFormat
		l.mustApplied(l.do(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberJoin{MemberJoin: join}}))
		_, state := l.state.Hash()
		return state
	}
	want := join(nil)
	for _, hash := range [][]byte{{1}, make([]byte, 32), bytes.Repeat([]byte{1}, 33)} {
		if got := join(hash); got != want {
			t.Errorf("with a hash of %d bytes the state has hash %x, without %x", len(hash), got, want)
		}
	}
}
