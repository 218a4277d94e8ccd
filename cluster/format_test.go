package cluster_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
)

// knows opens and starts a server as a build that reads log formats up to newest
// and says that it reads those up to said.
func (n *network) knows(s *server, newest, said uint32) {
	n.t.Helper()
	s.open(func(c *cluster.Config) {
		state := fsm.New(fsm.Config{MaxFormat: newest})
		s.state = state
		c.StateMachine, c.Registry = state, state
		c.TakeSnapshot = func() cluster.Snapshot { return state.Snapshot() }
		c.PeerList, c.LogFormat = n.peers, said
	})
}

// said waits until a server's table says which format a member knows.
func said(t *testing.T, by *server, tag string, format uint32) {
	t.Helper()
	eventually(t, "the announced format", func() bool {
		for _, m := range by.state.Members() {
			if m.GetTag() == tag {
				return m.GetLogFormat() == format
			}
		}
		return false
	})
}

// TestLogFormatWaitsForTheLastMember: the log format goes up when the last member
// says that it reads a newer one, and not before; after that a member that says
// it does not is not let in.
func TestLogFormatWaitsForTheLastMember(t *testing.T) {
	t.Parallel()
	const before, after = 7, 8
	n := newNetwork(t, 3)
	for i, s := range n.servers {
		n.knows(s, after, []uint32{after, after, before}[i])
	}
	startAll(n.servers...)
	n.leader()
	last := n.server("C")
	restart := func(format uint32) {
		last.stop(false)
		n.knows(last, after, format)
		last.start()
		eventually(t, "quorum after the restart", last.node.HasQuorum)
	}
	format := func() uint32 { return n.server("A").state.Format() }
	eventually(t, "the format that all know", func() bool { return format() == before })
	// Up, and down again: no entry is left that the older build does not read.
	n.server("B").stop(false)
	n.knows(n.server("B"), before, before)
	n.server("B").start()
	said(t, n.server("A"), "B", before)
	last.mustNext("users")
	if got := format(); got != before {
		t.Errorf("format %d while B and C read %d, want %d", got, before, before)
	}
	n.server("B").stop(false)
	n.knows(n.server("B"), after, after)
	n.server("B").start()
	said(t, n.server("A"), "B", after)
	restart(after)
	eventually(t, "the newer format", func() bool { return format() == after })
	last.mustNext("users")
	n.agree()

	last.stop(false)
	n.knows(last, after, before)
	last.start()
	select {
	case <-last.node.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a member that says it does not read the log goes on")
	}
	if err := last.node.Err(); !errors.Is(err, member.ErrTooOld) {
		t.Errorf("it ended with %v, want %v", err, member.ErrTooOld)
	}
}
