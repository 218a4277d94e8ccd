package client

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// slow is the time without an answer after which a try checks whether its node is silent.
	slow = 300 * time.Millisecond
	// silence is how long the node may take to answer that check.
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

// silent reports whether a node answers nothing while another node answers.
//
// To send the call to another node without a check, as a hedge ("The Tail at Scale", Dean and
// Barroso 2013), would double the load of a cluster that is only slow. The check writes
// nothing, and all calls share it. A node that writes slowly answers it, so a call is sent
// again only if its node hangs.
func (r *router) silent(ctx context.Context, n *node) bool {
	l := r.look(lookAgain, n)
	answered, asked := l.answered[n]
	if !asked {
		return false
	}
	over := time.NewTimer(time.Until(l.began.Add(silence)))
	defer over.Stop()
	select {
	case <-answered:
		return false
	case <-over.C:
		return !closed(answered) && l.anyAnswered()
	case <-ctx.Done():
		return false
	}
}

// anyAnswered reports whether a node has answered.
func (l *look) anyAnswered() bool {
	for _, answered := range l.answered {
		if closed(answered) {
			return true
		}
	}
	return false
}
