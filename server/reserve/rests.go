package reserve

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// rest is the pieces of one tag after their removal from the keeper: no caller can get
// their numbers any more.
type rest struct {
	key
	principal *string
	pieces    []piece
}

// takeRest removes and returns the pieces of a tag, if there are any. The caller holds mu.
func (h *tagState) takeRest() (rest, bool) {
	r := rest{h.key, h.principal, h.pieces}
	h.pieces = nil
	return r, len(r.pieces) > 0
}

// takeIdle forgets the tags that have been idle for idleFor, and returns their pieces.
func (k *Keeper) takeIdle() (rests []rest) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	var before *list.Element
	for e := k.recent.Back(); e != nil; e = before {
		h := e.Value.(*tagState)
		if now.Sub(h.last) < idleFor {
			break // The elements before were used later.
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

// giveBack returns the rests, each tag's newest first: the piece before can be returned only
// then. The state accepts a rest if it is the newest range of its tag; otherwise it stays a
// gap.
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
			return // Then no older piece is the newest range either.
		}
	}
}
