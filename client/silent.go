package client

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// slow is the time without an answer after which a try checks whether its node is silent.
	slow = 300 * time.Millisecond
	// silence is how long the node may take to answer that check, at least.
	silence = 200 * time.Millisecond
)

// whenSilent cancels a try once its node is silent, so that the call goes to another node.
// stop ends the check and reports whether it has cancelled the try.
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

// silent reports whether a node answers nothing while another node answers. As long as no other
// does, the check goes on until the look is over: the others may be slow too.
//
// To send the call to another node without a check, as a hedge ("The Tail at Scale", Dean and
// Barroso 2013), would double the load of a cluster that is only slow. The check writes
// nothing, and all calls share it. A node that writes slowly answers it, so a call is sent
// again only if its node hangs.
func (r *router) silent(ctx context.Context, n *node) bool {
	l := r.unanswered(n)
	answered, asked := l.answered[n]
	if !asked {
		return false
	}
	over, cancel := context.WithDeadline(ctx, l.began.Add(lookTimeout))
	defer cancel()
	select {
	case <-answered:
	case <-l.any:
	case <-over.Done():
	}
	if closed(answered) || !closed(l.any) {
		return false
	}
	late := time.NewTimer(time.Until(l.late()))
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
	case <-over.Done():
	}
	return !closed(answered) && ctx.Err() == nil
}

// late returns after when a node that has not answered is silent. The others may be far too, so it goes by
// the first answer.
func (l *look) late() time.Time {
	if !closed(l.any) {
		return l.began.Add(silence)
	}
	return l.began.Add(max(silence, l.first.Sub(l.began)*3/2))
}

// unanswered returns the newest look, if it still waits for a node's answer; else one that asks the node.
func (r *router) unanswered(n *node) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.newestLook
	if answered, asked := l.answered[n]; asked && !closed(answered) && time.Since(l.began) < lookTimeout {
		return l
	}
	return r.lookLocked(lookAgain, n)
}

// leaveSilent ends the streams to nodes that a look, which has found another leader, does not hear of in
// the time that a node has for an answer: with them all their calls, however young, go to another node.
func (r *router) leaveSilent(l *look, leader *node) {
	if !sleep(r.ctx, time.Until(l.late())) {
		return
	}
	for n, answered := range l.answered {
		if n != leader && !closed(answered) {
			n.leave()
		}
	}
}

// leave ends the calls on the stream to a silent node.
func (n *node) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flow != nil && n.flow.fail(n.silentError()) {
		n.suspect()
		n.flow.cancel()
	}
}

func (n *node) silentError() error {
	return status.Errorf(codes.Unavailable, "the node at %s is silent", n.address)
}
