package op

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestPropose: each error says whether the operation may have been applied. A result that
// cannot be read is one of an operation that was.
func TestPropose(t *testing.T) {
	encoded := func(r *raftlogv1.Result) []byte {
		b, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	busy := outcome.NewNotApplied(outcome.Overloaded, nil)
	bad := "\xff"
	refusal := &raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA}
	for name, c := range map[string]struct {
		envelope Envelope
		answer   []byte
		failure  error
		outcome  outcome.Outcome
		refused  bool
		codec    bool
	}{
		"a result":                       {answer: encoded(&raftlogv1.Result{LogIndex: 7}), outcome: outcome.Applied},
		"a refusal":                      {answer: encoded(&raftlogv1.Result{Refusal: refusal}), outcome: outcome.Unknown, refused: true},
		"bytes that are no result":       {answer: []byte("\xff"), outcome: outcome.Unknown, codec: true},
		"the proposer's error":           {failure: busy, outcome: outcome.NotApplied},
		"an operation with a wrong name": {envelope: Envelope{Principal: &bad}, outcome: outcome.NotApplied, codec: true},
	} {
		t.Run(name, func(t *testing.T) {
			proposed := false
			result, err := c.envelope.Propose(t.Context(), func(_ context.Context, operation []byte) ([]byte, error) {
				proposed = true
				if o, err := Decode(operation); err != nil || o.Kind != KindMemberRemove {
					t.Errorf("proposed %v, %v", o, err)
				}
				return c.answer, c.failure
			}, &raftlogv1.MemberRemove{Tag: "A"})
			var codec *CodecError
			if errors.As(err, &codec) != c.codec || (RefusalOf(err) != nil) != c.refused || outcome.Of(err) != c.outcome {
				t.Errorf("%v", err)
			}
			var said *outcome.Error
			if c.codec && !errors.As(err, &said) {
				t.Errorf("%v does not say whether the operation was applied", err)
			}
			if (err == nil) != (result.GetLogIndex() == 7) {
				t.Errorf("%v, %v", result, err)
			}
			if proposed == (c.envelope.Principal != nil) {
				t.Errorf("proposed: %t", proposed)
			}
		})
	}
}
