package cluster_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
)

// earplugs hold back what arrives at a node, as if its process were paused; what
// it has sent before goes out. The rest waits for answers that do not come.
type earplugs struct {
	mu   sync.Mutex
	open chan struct{}
}

func (e *earplugs) put(in bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in {
		e.open = make(chan struct{})
	} else if e.open != nil {
		close(e.open)
		e.open = nil
	}
}

func (e *earplugs) wait() {
	e.mu.Lock()
	open := e.open
	e.mu.Unlock()
	if open != nil {
		<-open
	}
}

type plugged struct {
	net.Conn
	plugs *earplugs
}

func (c plugged) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.plugs.wait()
	return n, err
}

// TestReadAtPausedLeader: a leader that was paused finds answers to its last
// heartbeats when it wakes up, by which it must not believe that it still leads.
// Its lease is so long here that it does not notice the pause in any other way.
func TestReadAtPausedLeader(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 3)
	paused := n.servers[0]
	var plugs earplugs
	t.Cleanup(func() { plugs.put(false) })
	for _, s := range n.servers {
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			if s == paused {
				c.Heartbeat = 2500 * time.Millisecond // A lease of 2 s.
				c.Network = wrappedTCP(func(conn net.Conn) net.Conn { return plugged{s.link.wrap(conn), &plugs} })
			}
		})
	}
	startAll(n.servers...)
	n.leads(paused)
	paused.mustNext("users")

	plugs.put(true)
	other := n.servers[1]
	eventually(t, "another leader", func() bool {
		leader := other.node.Status().LeaderTag
		return leader != "" && leader != paused.tag
	})
	last := other.mustNext("users")
	// The read begins before the answers are let through, and after the write.
	time.AfterFunc(50*time.Millisecond, func() { plugs.put(false) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := paused.node.Linearize(ctx); err != nil {
		t.Logf("the read was refused: %v", err)
		return
	}
	if c, _ := paused.state.Identity("default", "users"); c.Last < last {
		t.Errorf("a linearizable read shows %d after %d was given", c.Last, last)
	}
}
