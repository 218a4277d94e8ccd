package client

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
)

// belonging is the knowledge which cluster a node's connections lead to. A new connection may
// lead to another node, so each is checked once.
//
// Invariant: dialled is raised before a connection can carry a call. So if dialled did not
// change during a call, and was known before it, the answer came over a checked connection.
type belonging struct {
	// dialled counts the connections made.
	dialled atomic.Uint64
	// known is the number of the newest connection that leads to the client's cluster.
	known atomic.Uint64
	// asking lets one caller ask, while the others wait for the answer.
	asking chan struct{}
}

// status asks a node for its status, and checks that the node is of the client's cluster. That
// is the cluster of the first node that answers, unless the configuration names it.
func (r *router) status(ctx context.Context, n *node) (*idnodev1.GetStatusResponse, error) {
	for {
		dialled := n.belongs.dialled.Load()
		s, err := n.api.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		if err != nil {
			return nil, unreachable(n.address, err)
		}
		if dialled == n.belongs.dialled.Load() {
			return s, r.judge(n, dialled, s.GetClusterId())
		}
	}
}

// judge records whether a connection leads to the client's cluster.
func (r *router) judge(n *node, dialled uint64, id string) error {
	if id == "" {
		return nil // The node has no cluster yet, and may join any.
	}
	r.clusterID.CompareAndSwap(nil, &id)
	if own := *r.clusterID.Load(); own != id {
		return &Error{
			Code: codes.FailedPrecondition, Reason: reasonOtherCluster, foreign: true,
			Message: fmt.Sprintf("the node at %s belongs to cluster %s, and this client to cluster %s", n.address, id, own),
		}
	}
	n.belongs.known.Store(dialled)
	return nil
}

// own returns the number of the node's newest connection once it is known to lead to the
// client's cluster, or why no call may be made over it.
func (r *router) own(ctx context.Context, n *node) (dialled uint64, err error) {
	if dialled = n.belongs.dialled.Load(); dialled == n.belongs.known.Load() {
		return dialled, nil
	}
	select {
	case n.belongs.asking <- struct{}{}:
		defer func() { <-n.belongs.asking }()
	case <-ctx.Done():
		return 0, unreachable(n.address, ctx.Err())
	}
	if dialled = n.belongs.dialled.Load(); dialled == n.belongs.known.Load() {
		return dialled, nil
	}
	if _, err := r.status(ctx, n); err != nil {
		return 0, err
	}
	if dialled = n.belongs.known.Load(); dialled == 0 {
		return 0, &Error{Code: codes.Unavailable, Reason: reasonNotFormed, Message: "the node at " + n.address + " has no cluster yet"}
	}
	return dialled, nil
}

// stillOwn returns the error of a try. It checks the result if the node got another connection
// meanwhile: the answer may have come over that connection. Then the outcome in the cluster is
// unknown, unless tried, the error of the node, says that nothing happened.
func (r *router) stillOwn(ctx context.Context, n *node, dialled uint64, tried error) error {
	if n.belongs.dialled.Load() == dialled {
		return tried
	}
	_, err := r.own(ctx, n)
	if err == nil {
		return tried
	}
	e := *errorOf(err)
	e.Unknown = tried == nil || errorOf(tried).effect() == effectUnknown
	if e.Reason != reasonOtherCluster {
		e.Reason = "" // Unlike before a try, something may have happened.
	}
	return &e
}
