package e2e

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestADirectoryThatWasSetBack puts an older copy of a voter's whole data directory in
// its place. As long as one witness is up the node ends before it votes, no identity
// comes twice, and all nodes that go on have one state.
func TestADirectoryThatWasSetBack(t *testing.T) {
	tier.Long(t)
	for name, v := range map[string]struct {
		leader, running bool
		// lagging, paused and down is what one of the others is when the node comes back.
		lagging, paused, down bool
	}{
		"of a follower, taken while stopped":                   {},
		"of a leader, taken while running":                     {leader: true, running: true},
		"of a follower, taken while running, another was away": {running: true, lagging: true},
		"of a leader, taken while stopped, another is paused":  {leader: true, paused: true},
		"of a follower, taken while running, another is down":  {running: true, down: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := harness.StartCluster(t, harness.Config{})
			ledger := harness.NewLedger(t)
			victim := c.Leader(t)
			if !v.leader {
				victim = c.Others(victim)[0]
			}
			witness, third := c.Others(victim)[0], c.Others(victim)[1]
			takeMany(t, victim, ledger)
			older := copyOf(t, victim, v.running)
			c.WaitReady(t)
			if v.lagging {
				killed(t, third)
			}
			takeMany(t, victim, ledger)
			takeMany(t, witness, ledger)
			killed(t, victim)
			if v.paused {
				third.Process.Signal(t, syscall.SIGSTOP)
			}
			if v.down {
				// A leader knows what the victim had: the other node left would have to
				// be told first. Elections may have made it one or the other.
				if c.LeaderAmong(t, []*harness.Node{witness, third}) == third {
					witness, third = third, witness
				}
				killed(t, third)
			}
			if err := errors.Join(os.RemoveAll(victim.DataDir), os.CopyFS(victim.DataDir, os.DirFS(older))); err != nil {
				t.Fatal(err)
			}
			victim.Start(t)
			if v.lagging {
				third.Start(t)
			}
			ends(t, victim, "DATA_LOSS")
			switch {
			case v.paused:
				third.Process.Signal(t, syscall.SIGCONT)
			case v.down:
				third.Start(t)
			}
			takeMany(t, witness, ledger)
			takeMany(t, third, ledger)
			c.Agree(t)
		})
	}
}

// takeMany takes twenty identities.
func takeMany(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	for range 20 {
		take(t, n, ledger, "orders")
	}
}

// killed kills a node's process.
func killed(t *testing.T, n *harness.Node) {
	t.Helper()
	n.Process.Signal(t, syscall.SIGKILL)
	_ = n.Process.Wait(t, changed)
}

// copyOf returns a copy of a node's directory, taken while its process is paused in
// the middle of its work, or between two processes.
func copyOf(t *testing.T, n *harness.Node, running bool) string {
	t.Helper()
	if running {
		return n.CopyData(t)
	}
	killed(t, n)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(n.DataDir)); err != nil {
		t.Fatal(err)
	}
	n.Start(t)
	return dir
}
