package reserve

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// rest is what is left of the pieces of one tag, taken out of the keeper: nobody can be
// given it any more.
type rest struct {
	key
	principal *string
	pieces    []piece
}

// takeRest takes the pieces of a tag out, if there are any. The caller holds mu.
func (h *tagState) takeRest() (rest, bool) {
	r := rest{h.key, h.principal, h.pieces}
	h.pieces = nil
	return r, len(r.pieces) > 0
}

// takeIdle forgets the tags that were not used for long, and takes out what they have.
func (k *Keeper) takeIdle() (rests []rest) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	var before *list.Element
	for e := k.recent.Back(); e != nil; e = before {
		h := e.Value.(*tagState)
		if now.Sub(h.last) < idleFor {
			break // Those in front of it were used later.
		}
		before = e.Prev()
		if r, ok := h.takeRest(); ok {
			rests = append(rests, r)
		}
		k.recent.Remove(e)
		delete(k.tags, h.key)
	}
	return rests
}

// giveBack returns the rests, each tag's newest first: the one before it can come back only
// then. The state takes a rest back if it is the newest range of its tag. Otherwise it stays
// a gap.
func (k *Keeper) giveBack(ctx context.Context, rests []rest) {
	for some := range slices.Chunk(rests, maxConcurrent) {
		var wg sync.WaitGroup
		for _, r := range some {
			wg.Go(func() { k.giveBackTag(ctx, r) })
		}
		wg.Wait()
	}
}

func (k *Keeper) giveBackTag(ctx context.Context, r rest) {
	for _, p := range slices.Backward(r.pieces) {
		ret := &raftlogv1.HiLoReturn{Tag: r.tag, Low: p.Low, High: p.High, Last: p.next - 1, Token: p.token, CheckToken: true}
		result, err := k.propose(ctx, r.key, r.principal, ret)
		if err != nil || !result.GetHiloReturn().GetReturned() {
			return // Then no older one is the newest either.
		}
	}
}
