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

// gatedPings fail for one tag until the gate is open.
type gatedPings struct {
	cluster.Peers
	tag  string
	open *atomic.Bool
}

func (p gatedPings) Ping(ctx context.Context, tag, address string, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	if tag == p.tag && !p.open.Load() {
		return nil, errors.New("the gate is closed")
	}
	return p.Peers.Ping(ctx, tag, address, req)
}

// TestVoteThatLosesTheQuorum: with one of three voters down, a fourth that has caught up
// and then falls silent on its Raft port gets no vote, because three of four would have
// to answer: the cluster would stand still. It gets the vote when it answers again.
func TestVoteThatLosesTheQuorum(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	log := &logbuffer.Buffer{}
	n := startNetwork(t, 3, func(c *cluster.Config) {
		c.Peers = gatedPings{c.Peers, "D", &open}
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	leader := n.leader()
	others := n.others(leader)
	others[0].stop(true)

	d, itsRaft := newServer(t, "D"), newNetworkFault()
	t.Cleanup(itsRaft.heal)
	n.servers = append(n.servers, d)
	d.open(func(c *cluster.Config) { c.Join, c.Network = []string{leader.grpc}, wrappedTCP(itsRaft.wrap) })
	d.start()
	eventually(t, "D to catch up", func() bool { return d.state.AppliedIndex() > 0 })
	// D learns that an entry is committed after the leader has its answer to one, from which
	// the leader knows that its entries reach D.
	leader.mustNext("orders")
	newest := leader.state.AppliedIndex()
	eventually(t, "D to have the newest entry", func() bool { return d.state.AppliedIndex() >= newest })
	itsRaft.partition()
	open.Store(true) // It is found to have caught up, and to answer on its other port.

	eventually(t, "the vote to be refused", func() bool {
		return strings.Contains(log.String(), "with D, 3 of the voters A, B, C, D must answer, and these do not: ") &&
			strings.Contains(log.String(), others[0].tag+", D")
	})
	leader.mustNext("orders")
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
