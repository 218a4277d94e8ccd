package fsm

import (
	"bytes"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAJoinBelowStrictFormatIgnoresItsToken, whatever its bytes: nodes of format 2 do
// not know the field, and states must not differ.
func TestAJoinBelowStrictFormatIgnoresItsToken(t *testing.T) {
	add := func(hash []byte) uint64 {
		l := newLogOf(t, MergeFormat)
		add := &raftlogv1.MemberAdd{Member: testMember("D"), TokenHash: hash}
		add.Member.LogFormat = StrictFormat
		l.mustApplied(l.do(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAdd{MemberAdd: add}}))
		_, state := l.state.Hash()
		return state
	}
	want := add(nil)
	for _, hash := range [][]byte{{1}, make([]byte, 32), bytes.Repeat([]byte{1}, 33)} {
		if got := add(hash); got != want {
			t.Errorf("with a hash of %d bytes the state has hash %x, without %x", len(hash), got, want)
		}
	}
}
