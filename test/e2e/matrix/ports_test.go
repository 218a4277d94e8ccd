package matrix

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestF40PortsCut cuts single ports of the leader, in one direction or both, and judges each node: one that
// gets to the leader serves, and one that does not says so, and why.
func TestF40PortsCut(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for range r.cycles(t, 1, 20) {
		for _, cut := range []struct {
			what   string
			port   harness.Port
			faults edge.Fault
			// one says that one follower alone does not get through, both ways.
			one bool
		}{
			{"the port for callers", harness.CallersPort, edge.Cut, false},
			{"requests to Raft's port", harness.RaftPort, edge.LoseRequests, false},
			{"answers of Raft's port", harness.RaftPort, edge.LoseAnswers, false},
			{"Raft's port", harness.RaftPort, edge.Cut, false},
			{"one link", harness.RaftPort, edge.Cut, true},
		} {
			leader := r.c.Leader(t)
			others := r.c.Others(leader)
			r.traffic.Thick(t)
			served := r.c.Nodes
			if cut.one {
				r.c.CutPort(others[0], leader, cut.port, cut.faults)
				r.c.CutPort(leader, others[0], cut.port, cut.faults)
				served = []*harness.Node{leader, others[1]}
				moved := false // Another may lead meanwhile, which both reach, or the other one does not.
				harness.Eventually(t, within(15*time.Second), cut.what+": the node behind it says so", func(ctx context.Context) error {
					if moved = !leads(t, leader); moved {
						return nil
					}
					return unserved(ctx, others[0])
				})
				if moved {
					served = nil
				}
			} else {
				for _, o := range others {
					r.c.CutPort(o, leader, cut.port, cut.faults)
				}
			}
			for _, n := range served {
				if took := r.traffic.Probe(t, n); took > within(15*time.Second) {
					t.Errorf("%s is cut: node %s gave an identity after %v", cut.what, n.Tag, took)
				}
			}
			r.c.Heal()
			r.c.WaitReady(t)
		}
	}
	r.ends(t)
}

// unserved returns nil if a node is not ready, and refuses with the reason that its leader does not answer.
func unserved(ctx context.Context, n *harness.Node) error {
	if serves(ctx, n) {
		return fmt.Errorf("node %s is ready", n.Tag)
	}
	_, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
	if harness.Reason(err) == "LEADER_UNREACHABLE" {
		return nil
	}
	return errors.Join(fmt.Errorf("node %s does not say why it gives no identity", n.Tag), err)
}
