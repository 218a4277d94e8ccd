package harness

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/history/check"
)

// containerGRPC is the gRPC port within a container.
const containerGRPC = "7400"

// Contained is the record of a test with containers: traffic from the host, and
// what is done to the containers.
//
// The host reaches each container through a relay to its present address, since a
// container that comes back on the network may have another one. The callers use
// plain gRPC: the Go client would go to the leader by the name that it has on the
// containers' network alone.
type Contained struct {
	*Run
	Traffic *Traffic
	c       *Compose
	relays  map[*Container]*edge.Proxy
}

// Record begins the history of the containers, with callers on all of them whose
// calls have the given deadline.
func (c *Compose) Record(t testing.TB, deadline time.Duration, onReport func(*check.Report)) *Contained {
	t.Helper()
	k := &Contained{c: c, relays: make(map[*Container]*edge.Proxy)}
	cluster := &Cluster{cfg: Config{Certs: c.Certs, Size: len(c.Containers)}}
	for _, n := range c.Containers {
		relay := relay(t, k.address(t, n))
		k.relays[n] = relay
		n.contained, n.GRPC, n.Client = true, relay.Addr(), Dial(t, relay.Addr(), c.Certs)
		cluster.Nodes = append(cluster.Nodes, n.Node)
	}
	k.Run = Record(t, cluster, deadline+500*time.Millisecond, onReport)
	k.Traffic = k.startPlain(deadline)
	return k
}

func (k *Contained) address(t testing.TB, n *Container) string {
	t.Helper()
	return net.JoinHostPort(n.Address(t).String(), containerGRPC)
}

// Cut takes a container off the network; the host does not reach it either.
func (k *Contained) Cut(t testing.TB, n *Container) {
	t.Helper()
	k.relays[n].Set(edge.Cut)
	n.Disconnect(t)
	k.lost(n.Node)
}

// Mend puts a container back on the network.
func (k *Contained) Mend(t testing.TB, n *Container) {
	t.Helper()
	k.back(n.Node)
	n.Connect(t)
	k.Moved(t, n)
	k.relays[n].Set(edge.None)
}

// Moved lets the host reach a container that was started again, or is back.
func (k *Contained) Moved(t testing.TB, n *Container) {
	t.Helper()
	k.relays[n].Move(k.address(t, n))
}

// LeaderSeen is the container that leads, as far as one of the others can tell at
// once; nil if none can.
func (k *Contained) LeaderSeen(t testing.TB) *Container {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for _, n := range k.c.Containers {
		s, err := n.Client.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		if err != nil || !s.GetHasQuorum() {
			continue
		}
		for _, leader := range k.c.Containers {
			if leader.Tag == s.GetLeaderTag() {
				return leader
			}
		}
	}
	return nil
}

// Heal waits until every container serves and all are of one state, and records
// that.
func (k *Contained) Heal(t testing.TB) {
	t.Helper()
	for _, n := range k.c.Containers {
		n.WaitHealthy(t)
		k.Traffic.Probe(t, n.Node)
	}
}

// Ends lets the traffic end, compares the states, and judges the history.
func (k *Contained) Ends(t testing.TB) {
	t.Helper()
	k.Heal(t)
	k.Traffic.Thick(t)
	k.Traffic.Stop()
	k.c.Agree(t)
	for _, n := range k.c.Containers {
		s, err := n.Status(t)
		if err != nil {
			t.Fatal(err)
		}
		k.member(s)
	}
	k.End(t)
}

// Pause stops the container's processes where they are.
func (n *Container) Pause(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "pause", n.ID)
}

// Unpause lets them go on.
func (n *Container) Unpause(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "unpause", n.ID)
}

// Stop lets the container's process stop cleanly, in the time that the compose
// file gives it; it stays down.
func (n *Container) Stop(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "stop", n.ID)
}

// Restart stops the process cleanly and starts it again.
func (n *Container) Restart(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "restart", n.ID)
}
