package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/test/tier"
)

// copyOf returns a copy of the directory of a node that does not run.
func copyOf(t *testing.T, s *server) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// setBack puts the copy in the place of the node's directory.
func setBack(t *testing.T, s *server, dir string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(s.dir), os.CopyFS(s.dir, os.DirFS(dir))); err != nil {
		t.Fatal(err)
	}
}

// wantSetBack waits until the node has ended because its directory was set back.
func wantSetBack(t *testing.T, s *server) {
	t.Helper()
	select {
	case <-s.node.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("%s goes on with a directory that was set back", s.tag)
	}
	if err := s.node.Err(); !errors.Is(err, member.ErrSetBack) {
		t.Errorf("%s ended with %v", s.tag, err)
	}
}

// values takes n values of an identity, and fails if one was given before.
func values(t *testing.T, s *server, given map[int64]bool, n int) {
	t.Helper()
	for range n {
		take(t, given, s.mustNext("users"))
	}
}

// take notes that v was given, and fails if it was before.
func take(t *testing.T, given map[int64]bool, v int64) {
	t.Helper()
	if given[v] {
		t.Errorf("%d was given twice", v)
	}
	given[v] = true
}

// TestADirectoryThatWasSetBackIsRefused: the node followed or led before, and its start
// has a number that was seen, or one of its own: then its log and term tell.
func TestADirectoryThatWasSetBackIsRefused(t *testing.T) {
	tier.Long(t)
	for name, tt := range map[string]struct {
		leader, freshStart, oneDown bool
	}{
		"a follower, the number of a start that was seen": {false, false, false},
		"a follower, a start with a fresh number":         {false, true, false},
		"a leader, a start with a fresh number":           {true, true, false},
		"a follower, with one of three down":              {false, true, true},
		"a leader, with one of three down":                {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, given := startNetwork(t, 3), map[int64]bool{}
			values(t, n.servers[0], given, 5)
			lost := n.others(n.leader())[0]
			if tt.leader {
				lost = n.leader()
			}
			lost.stop(true)
			dir := copyOf(t, lost)
			n.run(lost)
			others := n.others(lost)
			if tt.leader {
				n.leads(lost)
			}
			values(t, others[0], given, 20)
			n.agree()
			// A leader knows at once how far the others are, and they how far it is;
			// followers hear of each other only now and then.
			stays, down := others[0], others[1]
			if n.leader() == down {
				stays, down = down, stays
			}
			lost.stop(true)
			if tt.oneDown {
				down.stop(true)
			}
			setBack(t, lost, dir)
			if tt.freshStart {
				// Nobody sees this start, and the next has a number of its own.
				lost.link.partition()
				lost.open(func(c *cluster.Config) { c.PeerList = n.peers })
				lost.start()
				lost.stop(true)
				lost.link.heal()
			}
			var config cluster.Config
			lost.open(func(c *cluster.Config) {
				c.PeerList = n.peers
				config = *c
			})
			lost.startDoomed()
			wantSetBack(t, lost)
			lost.stop(true)
			if _, err := cluster.Open(config); !errors.Is(err, member.ErrSetBack) {
				t.Fatalf("it starts again: %v", err)
			}
			if tt.oneDown {
				n.run(down)
				v, _ := stays.eventuallyNext("users")
				take(t, given, v)
			}
			values(t, stays, given, 5)
		})
	}
}

// TestATrustedDirectoryIsAccepted: an operator trusts a directory that was set back, and
// the next start needs nobody to, also where a member was down that has seen more starts.
// The node was refused before.
func TestATrustedDirectoryIsAccepted(t *testing.T) {
	t.Parallel()
	n, given := startNetwork(t, 3), map[int64]bool{}
	lost := n.others(n.leader())[0]
	lost.stop(true)
	dir := copyOf(t, lost)
	for range 4 {
		n.run(lost)
		values(t, lost, given, 5)
		n.agree()
		lost.stop(true)
	}
	down := n.others(n.leader())[0]
	if down == lost {
		down = n.others(n.leader())[1]
	}
	down.stop(true)
	setBack(t, lost, dir)
	lost.open(func(c *cluster.Config) { c.PeerList = n.peers })
	lost.startDoomed()
	wantSetBack(t, lost)
	lost.stop(true)
	for _, trusted := range []bool{true, false} {
		lost.open(func(c *cluster.Config) { c.PeerList, c.TrustData, c.TrustWait = n.peers, trusted, time.Second })
		lost.start()
		values(t, lost, given, 5)
		n.agree()
		if trusted {
			lost.stop(true)
		}
	}
	n.run(down)
	n.leads(lost) // So each of the others has accepted it, or it has ended.
	values(t, down, given, 5)
	n.agree()
}

// TestANodeThatComesBackToASetBackMajority: B's directory was set back while C, which
// lagged behind, was the only other member up: nobody could notice. When A is back, B is refused
// and ends, unless C leads and A ends before, since it must take entries back. No two
// nodes that go on have different states.
func TestANodeThatComesBackToASetBackMajority(t *testing.T) {
	tier.Long(t)
	n := startNetwork(t, 3)
	a := n.leader()
	b, c := n.others(a)[0], n.others(a)[1]
	a.mustNext("users")
	n.agree()
	c.stop(true)
	b.stop(true)
	older := copyOf(t, b)
	n.run(b)
	for range 20 {
		b.mustNext("users")
	}
	eventually(t, "both to have the same", func() bool { return a.state.AppliedIndex() == b.state.AppliedIndex() })
	a.stop(true)
	b.stop(true)
	setBack(t, b, older)
	n.run(b, c)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 5 {
		_, _ = b.next(ctx, "users") // These are given twice; nobody can know.
	}
	a.open(func(c *cluster.Config) { c.PeerList = n.peers })
	a.startDoomed()
	ended := func(s *server) bool {
		select {
		case <-s.node.Done():
			return true
		default:
			return false
		}
	}
	eventually(t, "one of the two to end", func() bool { return ended(a) || ended(b) })
	if err := b.node.Err(); err != nil && !errors.Is(err, member.ErrSetBack) {
		t.Errorf("B ended with %v", err)
	}
	eventually(t, "one state, or one node less", func() bool {
		if ended(a) || ended(c) {
			return true
		}
		at, hash := a.state.Hash()
		other, otherHash := c.state.Hash()
		return at == other && hash == otherHash && a.node.HasQuorum()
	})
	// It hears of another state, or of other entries, whichever comes first.
	if err := a.node.Err(); err != nil && !errors.Is(err, member.ErrTakenBack) && !errors.Is(err, member.ErrDiverged) {
		t.Errorf("A ended with %v", err)
	}
}

// TestMembersKnowHowLongAProcessHasRun, by their pings: its greetings are from its start.
func TestMembersKnowHowLongAProcessHasRun(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 3)
	eventually(t, "ages in the record of A", func() bool {
		n.servers[0].mustNext("users") // Else nothing is written.
		data, err := os.ReadFile(filepath.Join(n.servers[0].dir, "witness.json"))
		if err != nil {
			return false
		}
		known, err := witness.Decode(data, n.servers[0].node.ClusterID())
		old := 0
		for _, s := range known.Members {
			if s.Age > 2*time.Second {
				old++
			}
		}
		return err == nil && old == 2
	})
}
