package fsm

import (
	"testing"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAnOperationOfALaterFormatIsMalformed: members that do not know it answer the same.
func TestAnOperationOfALaterFormatIsMalformed(t *testing.T) {
	l := newFormedLog(t)
	l.state.contents.format = firstFormat - 1
	r := l.mustRefuse("a later format", opMergeOf(&raftlogv1.Merge{}))
	if want := invalid("", "%v", op.ErrMalformed); r.GetReason() != want.Reason || r.GetDetail() != want.Detail {
		t.Errorf("refused with %v", r)
	}
}
