package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/idnode/idnode/client/idnodev1"
)

// clusterIDKey is the metadata by which a call names its cluster.
const clusterIDKey = "idnode-cluster-id"

// belonging is the knowledge which cluster a client belongs to. Every call names that cluster, so
// a node of another one refuses it, whichever node the address leads to by then.
type belonging struct {
	// id is the cluster's id. Once known it stays: ranges in memory are of that cluster. It is
	// empty if the first answers were of two clusters.
	id string
	// sure means that the configuration has the id, or two endpoints, or the only one, have
	// answered it. Until then another answer refuses all calls.
	sure bool
	// err refuses all calls; nil if the endpoints do not contradict each other.
	err *Error
}

// status asks a node for its status, and checks that the node is of the client's cluster.
func (r *router) status(ctx context.Context, n *node) (*idnodev1.GetStatusResponse, error) {
	s, err := n.api.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		return nil, unreachable(n.address, err)
	}
	return s, r.judge(n, s)
}

// judge notes a node's cluster, and refuses a node of another cluster than the client's.
func (r *router) judge(n *node, s *idnodev1.GetStatusResponse) error {
	id := s.GetClusterId()
	if id == "" {
		return nil // The node has no cluster yet, and may join any.
	}
	b, news, alone := r.note(n, id)
	if news && len(s.GetMembers()) == 1 && !alone {
		r.cfg.Logger.Warn("idnode: one of several endpoints is a cluster of one node", "node", n.address, "cluster", id)
	}
	if b == nil || b.id == "" || b.id == id {
		n.told.Store(b != nil && b.id == id)
		return nil
	}
	if news {
		r.cfg.Logger.Warn("idnode: a node of another cluster gets no calls", "node", n.address, "cluster", id, "own", b.id)
	}
	return &Error{
		Code: codes.FailedPrecondition, Reason: reasonOtherCluster, foreign: true,
		Message: fmt.Sprintf("the node at %s belongs to cluster %s, and this client to cluster %s", n.address, id, b.id),
	}
}

// note notes the cluster that a node has answered. news says that it is an endpoint which has not
// answered that before, and alone that there is no other endpoint.
func (r *router) note(n *node, id string) (b *belonging, news, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.given, n) {
		news = r.heard[n.address] != id
		r.heard[n.address] = id
	}
	if b = r.belongs.Load(); b != nil {
		b = r.decideLocked() // It may contradict what the client is not sure of.
	}
	return b, news, r.endpoints() == 1
}

// decide concludes the client's cluster from the newest answers of its endpoints.
func (r *router) decide() *belonging {
	if b := r.belongs.Load(); b != nil && b.sure {
		return b
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decideLocked()
}

func (r *router) decideLocked() *belonging {
	b := r.belongs.Load()
	if b != nil && b.sure || len(r.heard) == 0 {
		return b
	}
	next := belonging{}
	if b != nil {
		next.id = b.id
	}
	addresses := slices.Sorted(maps.Keys(r.heard))
	first := addresses[0]
	for _, a := range addresses {
		if r.heard[a] != r.heard[first] {
			next.err = contradiction(first, r.heard[first], a, r.heard[a])
		}
	}
	switch {
	case next.err != nil:
	case next.id == "":
		next.id = r.heard[first]
	case next.id != r.heard[first]:
		next.err = contradiction("an endpoint that answered before", next.id, first, r.heard[first])
	}
	next.sure = next.err == nil && len(addresses) >= min(2, r.endpoints())
	if next.err != nil {
		r.newest.Store(0) // It may be another cluster's log index.
	}
	r.belongs.Store(&next)
	return &next
}

func contradiction(one, id, other, otherID string) *Error {
	return &Error{
		Code: codes.FailedPrecondition, Reason: reasonOtherCluster, foreign: true,
		Message: fmt.Sprintf("the endpoints are of two clusters: %s of %s, and %s of %s; take one from the list, or set the cluster's id",
			one, id, other, otherID),
	}
}

// own returns nil once the client's cluster is known, or why no call may be made at a node.
func (r *router) own(ctx context.Context, n *node) error {
	if r.belongs.Load() == nil {
		r.awaitLook(ctx)
	}
	if r.belongs.Load() == nil { // The node says why.
		if err := n.ready(ctx); err != nil {
			return err
		}
		if _, err := r.status(ctx, n); err != nil {
			return err
		}
	}
	switch b := r.decide(); {
	case b == nil:
		return &Error{Code: codes.Unavailable, Reason: reasonNotFormed, Message: "the node at " + n.address + " has no cluster yet"}
	case b.err != nil:
		r.look(lookAgain, nil)
		return b.err
	case !b.sure:
		r.look(lookSoon, nil)
	}
	return nil
}

// awaitLook waits for the end of a look that has not ended yet, for at most half of a call's time.
func (r *router) awaitLook(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	select {
	case <-r.look(0, nil).done:
	case <-ctx.Done():
	}
}

// named returns a context whose calls name the client's cluster, which is known.
func (r *router) named(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, clusterIDKey, r.belongs.Load().id)
}
