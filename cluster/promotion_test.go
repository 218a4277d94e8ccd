package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idnode/idnode/cluster"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/test/logbuffer"
)

// gatedPings fail for one member until the gate is open. From then on they give the member's
// newest answer from before.
type gatedPings struct {
	cluster.Peers
	of    *atomic.Pointer[server]
	open  *atomic.Bool
	reply *atomic.Pointer[peerv1.PingResponse]
}

func (p gatedPings) Ping(ctx context.Context, id []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	gated := p.of.Load()
	if gated != nil && p.open.Load() && string(gated.node.ID().Bytes()) == string(id) {
		return p.reply.Load(), nil
	}
	reply, err := p.Peers.Ping(ctx, id, req)
	if gated == nil || err != nil || string(gated.node.ID().Bytes()) != string(id) {
		return reply, err
	}
	p.reply.Store(reply)
	return nil, errors.New("the gate is closed")
}

// TestVoteThatLosesTheQuorum: with one of three voters down, a fourth that has caught up
// and then falls silent on its Raft port gets no vote, because three of four would have
// to answer: the cluster would stand still. It gets the vote when it answers again.
func TestVoteThatLosesTheQuorum(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	var gated atomic.Pointer[server]
	var reply atomic.Pointer[peerv1.PingResponse]
	log := &logbuffer.Buffer{}
	n := startNetwork(t, 3, func(c *cluster.Config) {
		c.Peers = gatedPings{c.Peers, &gated, &open, &reply}
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	leader := n.leader()
	others := n.others(leader)
	others[0].stop(true)

	d, itsRaft := newServer(t, "D"), newNetworkFault()
	t.Cleanup(itsRaft.heal)
	n.servers = append(n.servers, d)
	d.open(func(c *cluster.Config) { c.Join, c.Network = []string{leader.grpc}, wrappedTCP(itsRaft.wrap) })
	gated.Store(d)
	d.start()
	eventually(t, "D to catch up", func() bool { return d.state.AppliedIndex() > 0 })
	// D learns that an entry is committed after the leader has its answer to one, from which
	// the leader knows that its entries reach D.
	leader.mustNext("orders")
	newest := leader.state.AppliedIndex()
	eventually(t, "D to have the newest entry", func() bool { return d.state.AppliedIndex() >= newest })
	eventually(t, "an answer of D's that says so", func() bool { return reply.Load().GetAppliedIndex() >= newest })
	itsRaft.partition()
	open.Store(true) // It is found to have caught up, by its answer from before.

	eventually(t, "the vote to be refused", func() bool {
		return strings.Contains(log.String(), "with D, 3 of the voters A, B, C, D must answer, and these do not: ") &&
			strings.Contains(log.String(), others[0].tag+", D")
	})
	leader.mustNext("orders")
	gated.Store(nil)
	itsRaft.heal()
	eventually(t, "D to vote", func() bool { return voters(leader) == 4 })
}

func voters(s *server) int {
	count := 0
	for _, m := range s.state.Members() {
		if m.GetVoter() && !m.GetRemoved() {
			count++
		}
	}
	return count
}
