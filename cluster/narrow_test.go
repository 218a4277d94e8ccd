package cluster_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/test/tier"
)

// largest is what a narrow link lets through in one message: heartbeats and votes,
// and no entries that are worth the name.
const largest = 400

// narrowed loses what a node sends in one piece that is too large, while the link is
// narrow, and then everything that follows on the same connection.
type narrowed struct {
	net.Conn
	narrow *atomic.Bool
	holed  atomic.Bool
}

func (c *narrowed) Write(p []byte) (int, error) {
	if c.narrow.Load() && len(p) > largest {
		c.holed.Store(true)
	}
	if c.holed.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestALeaderThatCannotSendEntriesStepsDown: a link that loses large packets lets
// heartbeats through, so the leader's lease never ends. It must give way to another
// leader, and not come back while the link is as it is.
func TestALeaderThatCannotSendEntriesStepsDown(t *testing.T) {
	tier.Long(t)
	n := newNetwork(t, 3)
	narrow := map[*server]*atomic.Bool{}
	for _, s := range n.servers {
		narrow[s] = &atomic.Bool{}
		s.open(func(c *cluster.Config) {
			c.PeerList = n.peers
			c.Network = wrappedTCP(func(conn net.Conn) net.Conn {
				return &narrowed{Conn: s.link.wrap(conn), narrow: narrow[s]}
			})
		})
	}
	startAll(n.servers...)
	ill := n.leader()
	sound := n.others(ill)
	sound[0].mustNext("users")

	narrow[ill].Store(true)
	name := strings.Repeat("x", 2*largest)
	next := func(s *server) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.next(ctx, name)
		return err
	}
	eventually(t, "a value while the leader's link loses large packets", func() bool { return next(sound[0]) == nil })
	for range 20 {
		if err := next(sound[1]); err != nil {
			t.Errorf("after another leader was elected: %v", err)
		}
		if leads(ill) {
			t.Fatal("the leader whose link loses large packets leads again")
		}
	}
	narrow[ill].Store(false)
	if err := next(ill); err != nil {
		t.Errorf("over a link that is whole again: %v", err)
	}
	n.agree()
}
