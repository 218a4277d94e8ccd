package disaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestLostQuorum loses two of three nodes for good, under load, and goes on with
// the one that is left.
func TestLostQuorum(t *testing.T) {
	for round := range rounds(t, 1) {
		t.Run(strconv.Itoa(round), loseQuorum)
	}
}

func loseQuorum(t *testing.T) {
	ledger := harness.NewLedger(t)
	c := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, ledger, "before the loss", c.Nodes...)
	l.thick(t, 50)
	a, lost := c.Nodes[0], c.Nodes[1:]
	// What the others agree on while the survivor stands still, it never hears of.
	a.Process.Signal(t, syscall.SIGSTOP)
	l.thick(t, 50)
	for _, n := range lost {
		n.Process.Kill()
	}
	a.Process.Signal(t, syscall.SIGCONT)
	recover := []string{"recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", strconv.Itoa(skipAhead), "--yes"}
	refused(t, 1, recover...) // It runs.
	l.stop()
	a.Process.Kill()

	// With one more of them there would be a majority: it is not lost.
	lost[0].Start(t)
	harness.Eventually(t, 20*time.Second, "an answer", func(ctx context.Context) error {
		_, err := lost[0].Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		return err
	})
	if why := refused(t, 1, recover...); !strings.Contains(why, "majority") {
		t.Errorf("refused with %s", why)
	}
	lost[0].Process.Kill()
	for _, n := range lost {
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	before := clusterID(t, filepath.Join(a.DataDir, "node.json"))
	audit := filepath.Join(t.TempDir(), "audit.log")
	t.Log(must(t, with(recover, "--audit", audit)...))
	must(t, "audit", "verify", audit)
	if after := clusterID(t, filepath.Join(a.DataDir, "node.json")); after == before {
		t.Error("the cluster has its old id")
	}
	a.Start(t)
	a.WaitReady(t)
	after := startLoad(t, ledger, "after the recovery", a)
	after.thick(t, 50)

	// New nodes make it three again; the tags of the lost ones stay taken.
	for _, tag := range []string{"D", "E"} {
		n := c.Add(t, tag, "--join", a.GRPC)
		n.Start(t)
		n.Settled(t)
	}
	b := c.Stranger(t, "B", "--join", a.GRPC)
	b.Start(t)
	harness.Eventually(t, 20*time.Second, "node B is refused", func(context.Context) error {
		if b.Process.Running() {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	members := must(t, with(endpoints(a), "cluster", "members", "--removed")...)
	if strings.Count(members, "removed") != 2 || strings.Contains(b.Process.Tail(50), "ready") {
		t.Errorf("members:\n%s", members)
	}
	more := startLoad(t, ledger, "after the joins", c.Nodes[3:]...)
	more.thick(t, 50)
	harness.Eventually(t, 20*time.Second, "three voters", func(ctx context.Context) error {
		s, err := a.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		voters := 0
		for _, m := range s.GetMembers() {
			if m.GetRole() == idnodev1.Role_ROLE_FOLLOWER || m.GetRole() == idnodev1.Role_ROLE_LEADER {
				voters++
			}
		}
		if err == nil && voters != 3 {
			err = fmt.Errorf("%d vote", voters)
		}
		return err
	})
	// The cluster stands the loss of the survivor now.
	a.Process.Kill()
	after.stop()
	more.thick(t, 50)
	more.stop()
}

// clusterID returns the cluster's id in a node's record.
func clusterID(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), `"cluster_id": "`)
	id, _, _ := strings.Cut(after, `"`)
	return id
}

// TestSurvivorsThatDiffer: two of five go on, one of which heard less, and was
// first to recover.
func TestSurvivorsThatDiffer(t *testing.T) {
	tier.Long(t)
	ledger := harness.NewLedger(t)
	c := harness.StartCluster(t, harness.Config{Size: 5, Direct: true})
	l := startLoad(t, ledger, "before the loss", c.Nodes...)
	l.thick(t, 50)
	a, b := c.Nodes[0], c.Nodes[1]
	b.Process.Signal(t, syscall.SIGSTOP)
	l.thick(t, 50)
	a.Process.Signal(t, syscall.SIGSTOP)
	l.thick(t, 50)
	for _, n := range c.Nodes[2:] {
		n.Process.Kill()
		if err := os.RemoveAll(n.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	l.stop()
	a.Process.Kill()
	b.Process.Kill()
	recover := func(n *harness.Node, skip int) []string {
		return []string{"recover", "--data-dir", n.DataDir, "--members", "A,B", "--skip-ahead", strconv.Itoa(skip), "--yes"}
	}
	must(t, recover(b, skipAhead)...)
	must(t, recover(a, skipAhead)...)
	a.Start(t)
	b.Start(t)
	a.WaitReady(t)
	b.WaitReady(t)
	after := startLoad(t, ledger, "after the recovery", a, b)
	after.thick(t, 100)
	after.stop()
	c.Nodes = c.Nodes[:2]
	c.Agree(t)
}

// TestNothingIsLost: a recovery may be told that the lost nodes knew nothing more.
func TestNothingIsLost(t *testing.T) {
	ledger := harness.NewLedger(t)
	c := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, ledger, "before the loss", c.Nodes...)
	l.thick(t, 50)
	l.stop()
	c.Agree(t)
	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	last := ledger.Max("identity invoices")
	a := c.Nodes[0]
	refused(t, 2, "recover", "--data-dir", a.DataDir, "--members", "A", "--yes")
	refused(t, 1, "recover", "--data-dir", a.DataDir, "--members", "B", "--skip-ahead", "0", "--yes")
	refused(t, 1, "recover", "--data-dir", a.DataDir, "--members", "A,X", "--skip-ahead", "0", "--yes")
	refused(t, 2, "recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "0")
	audit := filepath.Join(t.TempDir(), "audit.log")
	anotherUsers(t, a.DataDir)
	must(t, "recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "0", "--yes", "--audit", audit)
	allAnotherUsers(t, a.DataDir, audit)
	a.Start(t)
	a.WaitReady(t)
	if got := nextOf(t, a); got != last+1 {
		t.Errorf("after %d came %d", last, got)
	}
}

// survivor is a node of a cluster that was killed under load.
type survivor struct {
	*harness.Node
	// whole is a copy of its directory, and last the newest value of an identity.
	whole string
	last  int64
}

// loseCluster kills a cluster under load and returns one of its nodes.
func loseCluster(t *testing.T) *survivor {
	t.Helper()
	c := harness.StartCluster(t, harness.Config{Direct: true})
	l := startLoad(t, harness.NewLedger(t), "before the loss", c.Nodes...)
	l.thick(t, 50)
	l.stop()
	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	s := &survivor{Node: c.Nodes[0], last: l.ledger.Max("identity invoices")}
	s.whole = s.DataDir + "-whole"
	if err := os.CopyFS(s.whole, os.DirFS(s.DataDir)); err != nil {
		t.Fatal(err)
	}
	return s
}

// again puts the directory back as it was.
func (s *survivor) again(t *testing.T) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(s.DataDir), os.CopyFS(s.DataDir, os.DirFS(s.whole))); err != nil {
		t.Fatal(err)
	}
}

// goesOn starts the recovered node, and checks that it goes on 1,000 values later.
func (s *survivor) goesOn(t *testing.T) {
	t.Helper()
	s.Start(t)
	s.WaitReady(t)
	if got := nextOf(t, s.Node); got != s.last+1001 {
		t.Errorf("after %d came %d", s.last, got)
	}
	s.Process.Kill()
}

// TestRecoveriesThatAreCutShort: a recovery that is killed at any point is finished
// by the next one, which raises nothing twice; a node that is started between them
// does not serve.
func TestRecoveriesThatAreCutShort(t *testing.T) {
	tier.Long(t)
	points := []string{
		"record-before:1", "record-after:1", "snapshot-before:1", "snapshot-written:1", "snapshot-after:1",
		"delete-before:1", "delete-after:1", "record-before:2", "record-after:2",
	}
	a := loseCluster(t)
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			a.again(t)
			recover := []string{"recover", "--data-dir", a.DataDir, "--members", "A", "--skip-ahead", "1000", "--yes"}
			cut := exec.CommandContext(t.Context(), harness.Binary(t), recover...)
			cut.Env = append(os.Environ(), "FAILPOINT="+point)
			if out, err := cut.CombinedOutput(); err == nil || cut.ProcessState.Exited() {
				t.Fatalf("it was not killed: %v %s", err, out)
			}
			a.Start(t)
			startedTooEarly(t, a.Node)
			a.Process.Kill()
			if r := idnode(t, recover...); r.code != 0 && !strings.Contains(r.errors, "a majority is available: 1 of 1") {
				t.Fatalf("exit code %d: %s", r.code, r.errors)
			}
			a.goesOn(t)
		})
	}
}

// startedTooEarly waits until a node has ended, or answers because its recovery has
// not begun, or is done.
func startedTooEarly(t *testing.T, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "the node ends or answers", func(ctx context.Context) error {
		if !n.Process.Running() {
			return nil
		}
		_, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		return err
	})
}
