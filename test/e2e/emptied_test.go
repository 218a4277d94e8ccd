package e2e

import (
	"errors"
	"os"
	"testing"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestEmptiedNodesFormNoOtherCluster: all nodes find their data directories empty, as where
// no volume was mounted, with the settings with which they formed their cluster. With its id
// among them they end, and say what to do; when the data are back, they go on.
func TestEmptiedNodesFormNoOtherCluster(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	next := func() int64 {
		r, err := c.Nodes[0].Ids.NextIdentity(t.Context(), &idnodev1.NextIdentityRequest{Name: "invoices"})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetBlocks()[0].GetFirst()
	}
	if v := next(); v != 1 {
		t.Fatalf("the first one is %d", v)
	}
	status, err := c.Nodes[0].Cluster.GetStatus(t.Context(), &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	flag := "--cluster-id=" + status.GetClusterId()
	for i, n := range c.Nodes {
		n.Process.Kill()
		err := os.Rename(n.DataDir, n.DataDir+".away")
		if i > 0 { // Where a disk would be mounted is a directory, too.
			err = errors.Join(err, os.Mkdir(n.DataDir, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.Nodes {
		n.Start(t, flag)
	}
	for _, n := range c.Nodes {
		ends(t, n, "if the disk of "+n.DataDir+" is not mounted, mount it")
		if code := n.Process.Wait(t, changed); code != 5 {
			t.Errorf("node %s ended with %d, want 5", n.Tag, code)
		}
	}
	for _, n := range c.Nodes {
		if err := errors.Join(os.RemoveAll(n.DataDir), os.Rename(n.DataDir+".away", n.DataDir)); err != nil {
			t.Fatal(err)
		}
		n.Start(t, flag)
	}
	c.WaitReady(t)
	if v := next(); v != 2 {
		t.Errorf("after 1 comes %d", v)
	}
}
