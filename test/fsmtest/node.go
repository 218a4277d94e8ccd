package fsmtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Node is a node of the cluster, as a service sees it: proposals and linearizable reads, which
// fail as a test asks. It is safe for concurrent use.
type Node struct {
	*Cluster

	mu              sync.Mutex
	faults          Faults
	proposals, held int
}

// Faults of a node.
type Faults struct {
	// Fail, if set, is the error of Propose. With Lost the operation is applied all the same.
	Fail error
	Lost bool
	// Boom makes Propose panic.
	Boom bool
	// Gate, if set, holds Propose up until it is closed or the call ends.
	Gate chan struct{}
	// Unreadable is the error of Linearize.
	Unreadable error
	// CatchUp, if set, is called by Linearize, and applies entries that the node lacked.
	CatchUp func()
}

// NewNode forms a cluster of the members, and returns a node of it.
func NewNode(t testing.TB, now time.Time, members ...*raftlogv1.Member) *Node {
	t.Helper()
	return &Node{Cluster: New(t, now, members...)}
}

// Set changes the faults.
func (n *Node) Set(change func(*Faults)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.faults)
}

// Faults returns the faults as they are.
func (n *Node) Faults() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// Propose implements the Proposer of its users.
func (n *Node) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	if gate := n.Faults().Gate; gate != nil {
		n.count(&n.held)
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, outcome.NewUnknown(outcome.Deadline, ctx.Err())
		}
	}
	n.count(&n.proposals)
	faults := n.Faults()
	if faults.Boom {
		panic("boom")
	}
	if faults.Fail != nil && !faults.Lost {
		return nil, faults.Fail
	}
	answer, err := n.Cluster.Propose(ctx, operation)
	if faults.Fail != nil {
		return nil, faults.Fail
	}
	return answer, err
}

// ProposeAll proposes operations one after the other.
func (n *Node) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	return Each(ctx, n.Propose, operations)
}

// Linearize implements the Linearizer of its users.
func (n *Node) Linearize(context.Context) error {
	faults := n.Faults()
	if faults.CatchUp != nil {
		faults.CatchUp()
	}
	return faults.Unreadable
}

// Proposals returns how many operations were proposed, but for those that a gate holds up.
func (n *Node) Proposals() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proposals
}

// Held returns how many proposals a gate has held up.
func (n *Node) Held() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

func (n *Node) count(counter *int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*counter++
}
