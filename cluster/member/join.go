package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Joiner asks a member for its cluster, and to add a node.
type Joiner interface {
	Greeter
	Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
}

const (
	// joinTimeout bounds one request; it is longer than an election.
	joinTimeout = 10 * time.Second
	// lastJoinPause is the longest wait between two requests.
	lastJoinPause = 2 * time.Second
)

// Join adds a node to an existing cluster, through any of the addresses.
type Join struct {
	// Self is this node; an empty tag requests the next free tag.
	Self *raftlogv1.Member
	// Addresses are one at least.
	Addresses []string
	// ClusterID is the only cluster that the node asks to join, in hexadecimal digits; any if empty.
	ClusterID string
	// Token is the token that lets the node in; may be empty.
	Token  string
	Joiner Joiner
	Logger *slog.Logger
	// Tell is called with the error of each request.
	Tell func(error)
}

// Run asks until the node is a member, ctx ends, or the cluster refuses permanently: then
// the error wraps ErrOtherCluster, ErrTagTaken, ErrRemoved or ErrJoinDenied, or is a *op.RefusedError.
// Repeated requests are harmless, because the cluster knows the node by its Raft id.
func (j Join) Run(ctx context.Context) (Place, error) {
	wait, complaints := firstPause, Complaints{Logger: j.Logger}
	for i := 0; ; i++ {
		address := j.Addresses[i%len(j.Addresses)]
		place, err := j.ask(ctx, address)
		if err == nil || final(err) {
			return place, err
		}
		complaints.Log("not joined yet", err)
		j.Tell(err)
		if !pause.For(ctx, wait) {
			return Place{}, fmt.Errorf("member: joining: %w: %w", context.Cause(ctx), err)
		}
		if (i+1)%len(j.Addresses) == 0 {
			wait = min(2*wait, lastJoinPause)
		}
	}
}

func final(err error) bool {
	refusal := op.RefusalOf(err)
	return refusal != nil && lasting(refusal.GetReason()) || errors.Is(err, ErrOtherCluster) || errors.Is(err, ErrTagTaken) ||
		errors.Is(err, ErrJoinDenied) || denied(err)
}

func (j Join) ask(ctx context.Context, address string) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := j.compare(ctx, address); err != nil {
		return Place{}, err
	}
	response, err := j.Joiner.Join(ctx, "", address, &peerv1.JoinRequest{Member: j.Self, Token: j.Token})
	if err != nil {
		return Place{}, j.refusal(address, err)
	}
	self := proto.CloneOf(j.Self)
	self.Tag = response.GetMember().GetTag()
	place, err := adopt(self, response.GetClusterId(), response.GetMembers())
	place.Confirmed = true
	return place, err
}

// compare compares the node's cluster with that of the address before anything is asked of it: a
// member of another one would have taken a tag and used up a token.
func (j Join) compare(ctx context.Context, address string) error {
	if j.ClusterID == "" {
		return nil
	}
	response, err := j.Joiner.Hello(ctx, "", address, &peerv1.HelloRequest{Self: j.Self})
	switch id := fmt.Sprintf("%x", response.GetClusterId()); {
	case err != nil:
		return fmt.Errorf("asking %s: %w", address, err)
	case id == "":
		return fmt.Errorf("asking %s: it has no cluster yet", address)
	case id != j.ClusterID:
		return fmt.Errorf("%w: cluster-id in this node's settings is %s, and %s is of cluster %s: nothing happened; after 'idnode "+
			"recover' put in the new cluster-id, and start the node again", ErrOtherCluster, j.ClusterID, address, id)
	}
	return nil
}

func (j Join) refusal(address string, err error) error {
	refusal := op.RefusalOf(err)
	switch {
	case refusal.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN:
		return fmt.Errorf("%w: %s says: %s", ErrTagTaken, address, refusal.GetDetail())
	case refusal.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED:
		return fmt.Errorf("%w: %s says: %s; 'idnode cluster join-token' makes a token, and with its file --join-token-file lets the node in",
			ErrJoinDenied, address, refusal.GetDetail())
	case refusal != nil && lasting(refusal.GetReason()):
		return &op.RefusedError{Refusal: refusal}
	}
	return fmt.Errorf("asking %s: %w", address, err)
}

// lasting says which refusals the same request gets again. One that this program does not know may pass.
func lasting(reason raftlogv1.RefusalReason) bool {
	switch reason {
	case raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA,
		raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID, raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER,
		raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED:
		return true
	}
	return false
}
