package client

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// slow is when a try without an answer asks whether its node is silent to all.
	slow = 300 * time.Millisecond
	// silence is how long the node has to say that it is not.
	silence = 200 * time.Millisecond
)

// whenSilent ends a try with cancel once its node is silent, so that the call goes
// elsewhere. stop ends the watch and says whether it ended the try.
func (r *router) whenSilent(ctx context.Context, n *node, cancel func()) (stop func() bool) {
	var left atomic.Bool
	watch := time.AfterFunc(slow, func() {
		for !r.silent(ctx, n) {
			if !sleep(ctx, slow) {
				return
			}
		}
		left.Store(true)
		cancel()
	})
	return func() bool {
		watch.Stop()
		return left.Load()
	}
}

// silent says whether a node says nothing at all while another one does.
//
// To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso
// 2013), would double the load of a cluster that is only slow. The question writes
// nothing, and all calls share it. A node that writes slowly answers it, so a call is sent
// again for a node that stands still, and for no other reason.
func (r *router) silent(ctx context.Context, n *node) bool {
	r.mu.Lock()
	l := r.look(lookAgain)
	r.mu.Unlock()
	over := time.NewTimer(time.Until(l.began.Add(silence)))
	defer over.Stop()
	select {
	case <-l.answered[n]:
		return false
	case <-over.C:
		return closed(l.heard) && !closed(l.answered[n])
	case <-ctx.Done():
		return false
	}
}
