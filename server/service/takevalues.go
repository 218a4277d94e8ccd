package service

import (
	"context"
	"fmt"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/server/apierror"
)

// takeValues is the part that NextIdentity and Generate have in common. Names are folded.
type takeValues struct {
	op.Envelope
	name, separator string
	count           int64
}

// takenValues are the values taken, in order: one block, or up to 64 if claimed ids are in
// between.
type takenValues struct {
	blocks   []identity.Block
	logIndex uint64
}

func (t takenValues) response() *idnodev1.NextIdentityResponse {
	list := make([]*idnodev1.ValueBlock, len(t.blocks))
	for i, b := range t.blocks {
		list[i] = &idnodev1.ValueBlock{First: b.First, Last: b.Last}
	}
	return &idnodev1.NextIdentityResponse{Blocks: list, LogIndex: t.logIndex}
}

// take takes values in the name of the caller where that counts.
func (i *identities) take(ctx context.Context, t takeValues) (res takenValues, err error) {
	keyed := t.Request != nil
	err = i.proposeAsCaller(ctx, keyed, keyed, func(principal *string) error {
		answer, err := i.proposer.Propose(ctx, t.operation(principal))
		if err == nil {
			res, err = i.taken(t, answer)
		}
		return err
	})
	return res, err
}

// operation returns the encoded operation, in the name of a principal; nil for none.
func (t takeValues) operation(principal *string) []byte {
	t.Principal = principal
	return t.EncodeIdentityNext(t.name, t.count, docid.Fold(t.separator))
}

// taken decodes the taken values of an answer. The error is an *op.RefusedError or an *apierror.Error.
func (i *identities) taken(t takeValues, answer []byte) (takenValues, error) {
	logIndex, blocks, ok := op.DecodeBlocks(answer)
	if !ok {
		result, err := op.DecodeResult(answer)
		if err != nil {
			return takenValues{}, internalCodec(err)
		}
		return takenValues{}, wrongResult(t, result)
	}
	if err := checkBlocks(blocks, t.count); err != nil {
		return takenValues{}, apierror.Internal(err)
	}
	i.events.issued(t.Database, docid.Identity, t.name, t.count)
	return takenValues{blocks, logIndex}, nil
}

// checkBlocks makes sure that the values are as many as were asked for: ids are
// built from them in a loop, which a wrong result must not make endless.
func checkBlocks(blocks []identity.Block, count int64) error {
	var sum int64
	for _, b := range blocks {
		// The difference of two int64 may overflow, so the loop bounds it.
		n := b.Last - b.First + 1
		if b.Last < b.First || n < 1 || n > count-sum {
			return fmt.Errorf("the values %d to %d do not fit %d", b.First, b.Last, count)
		}
		sum += n
	}
	if sum != count {
		return fmt.Errorf("%d values came for %d", sum, count)
	}
	return nil
}
