package matrix

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestF16DiskSetBack starts a node from an older copy of its data, under traffic:
// it ends, and says why. Where an operator trusts the copy, it gives no server-side
// id twice.
func TestF16DiskSetBack(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 2, 50) {
		n := r.c.Others(r.c.Leader(t))[0]
		r.traffic.Thick(t)
		if i%2 == 0 {
			n.Process.Kill()
		} else {
			n.Process.Stop(t)
		}
		backup := t.TempDir()
		copyData(t, backup, n.DataDir)
		r.restart(t, n)
		beyondReserved(t, n)
		r.traffic.Thick(t)
		n.Process.Kill()
		setBack(t, n, backup)
		n.Start(t)
		if code := n.Process.Wait(t, 15*time.Second); code != 4 || !strings.Contains(n.Process.Tail(1), "older copy") {
			t.Errorf("the node ended with %d, and did not say that its data were set back:\n%s", code, n.Process.Tail(30))
		}
		n.Start(t, "--trust-data")
		r.c.WaitReady(t)
		if out := n.Process.Output(); !strings.Contains(out, "server-side ids go on above") {
			t.Errorf("the node did not say that its etags were set back:\n%s", n.Process.Tail(30))
		}
	}
	r.ends(t)
}

func copyData(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// beyondReserved takes more server-side ids than were reserved before.
func beyondReserved(t *testing.T, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, 15*time.Second, "server-side ids", func(ctx context.Context) error {
		_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 300_000, BlocksOnly: true})
		return err
	})
}

// TestF37OlderCopiesTrusted brings all nodes back with what they had at three moments, trusted, and
// the two older ones first: the furthest leads, and nothing is lost that it has.
func TestF37OlderCopiesTrusted(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 2, 40) {
		oldest, older, newest := r.c.Nodes[i%3], r.c.Nodes[(i+1)%3], r.c.Nodes[(i+2)%3]
		r.traffic.Thick(t)
		first := oldest.CopyData(t)
		r.traffic.Thick(t)
		second := older.CopyData(t)
		r.c.WaitReady(t)
		oldest.Process.Kill()
		r.traffic.Thick(t) // From now on the other two have all that was answered.
		killAll(r.c)
		setBack(t, oldest, first)
		setBack(t, older, second)
		for _, n := range []*harness.Node{oldest, older} {
			before := len(n.Process.Output())
			n.Start(t, "--trust-data")
			harness.Eventually(t, 20*time.Second, n.Tag+" would elect a leader", func(context.Context) error {
				if !strings.Contains(n.Process.Output()[before:], "heartbeat timeout reached") {
					return errors.New("it is not up")
				}
				return nil
			})
		}
		after(2 * time.Second) // A node that has just started does not vote yet.
		newest.Start(t, "--trust-data")
		r.c.WaitReady(t)
	}
	r.ends(t)
}

// setBack puts a copy in the place of a node's data.
func setBack(t *testing.T, n *harness.Node, dir string) {
	t.Helper()
	if err := os.RemoveAll(n.DataDir); err != nil {
		t.Fatal(err)
	}
	copyData(t, n.DataDir, dir)
}

// TestF38DirectoriesEmptied lets all nodes find their data directories empty, as where no volume was
// mounted, with the settings with which they formed their cluster. With its id among them they
// end, and say what to do; when the data are back, they go on.
func TestF38DirectoriesEmptied(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	status, err := r.c.Nodes[0].Cluster.GetStatus(t.Context(), &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	flag := "--cluster-id=" + status.GetClusterId()
	for range r.cycles(t, 2, 50) {
		r.traffic.Thick(t)
		killAll(r.c)
		for i, n := range r.c.Nodes {
			err := os.Rename(n.DataDir, n.DataDir+".away")
			if i > 0 { // Where a disk would be mounted is a directory, too.
				err = errors.Join(err, os.Mkdir(n.DataDir, 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range r.c.Nodes {
			n.Start(t, flag)
		}
		for _, n := range r.c.Nodes {
			endedAfter(t, n, "if the disk of "+n.DataDir+" is not mounted, mount it")
			if code := n.Process.Wait(t, deadline); code != 5 {
				t.Errorf("node %s ended with %d, want 5", n.Tag, code)
			}
		}
		for _, n := range r.c.Nodes {
			if err := errors.Join(os.RemoveAll(n.DataDir), os.Rename(n.DataDir+".away", n.DataDir)); err != nil {
				t.Fatal(err)
			}
			n.Start(t, flag)
		}
		r.c.WaitReady(t)
	}
	r.ends(t)
}
