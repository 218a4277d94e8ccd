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

// Left is the rest of one tag's reserve.
type Left struct {
	// Database and Tag are folded.
	Database, Tag string
	Numbers       int64
	// Lasts is how long the numbers last at the present rate.
	Lasts time.Duration
}

// Total is the rest of all tags' reserves.
type Total struct {
	// Tags is the number of tags that have numbers, or should have.
	Tags    int
	Numbers int64
	// Lasts is that of the tag that runs out first; For if there is no tag. For is the
	// least it should be.
	Lasts, For time.Duration
}

// Short reports whether a tag has less than half of its target. A node that is cut off gets
// there; with a quorum it means that the cluster refuses further grants, or that the tag is
// used faster than the largest reserve allows.
func (t *Total) Short() bool { return t != nil && t.Lasts < t.For/2 }

// Left returns the rest of each tag that has numbers, or should have, in any order. It is
// empty for the only member, which needs no reserve, and for the nil Keeper.
func (k *Keeper) Left() (all []Left) {
	if k == nil || !k.hasOthers() {
		return nil
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for t, e := range k.tags {
		h := e.Value.(*tagState)
		numbers, use := h.left(), h.use(now, k.cfg.For)
		if use == 0 {
			continue // No numbers may be given.
		}
		lasts := float64(k.cfg.For) * float64(numbers) / float64(use)
		all = append(all, Left{t.database, t.tag, numbers, time.Duration(lasts)})
	}
	return all
}

// Total returns the sum of Left; nil for the nil Keeper.
func (k *Keeper) Total() *Total {
	if k == nil {
		return nil
	}
	total := &Total{Lasts: k.cfg.For, For: k.cfg.For}
	for _, l := range k.Left() {
		if total.Tags == 0 || l.Lasts < total.Lasts {
			total.Lasts = l.Lasts
		}
		total.Tags++
		total.Numbers += l.Numbers
	}
	return total
}
