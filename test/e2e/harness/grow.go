package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/freeport"
)

// Add prepares a further node, which finds its place with the given flags of
// `idnode serve` (--join) instead of a list of peers. An empty tag
// leaves the tag to the cluster; Settled then fills it in.
func (c *Cluster) Add(t testing.TB, tag string, place ...string) *Node {
	t.Helper()
	n := c.Stranger(t, tag, place...)
	n.index = len(c.Nodes)
	c.Nodes = append(c.Nodes, n)
	return n
}

// Stranger prepares a process that is none of the cluster's nodes, and that
// nothing here waits for.
func (c *Cluster) Stranger(t testing.TB, tag string, place ...string) *Node {
	t.Helper()
	dir, err := os.MkdirTemp(c.dir, "node-"+tag+"-")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Tag: tag, DataDir: filepath.Join(dir, "data"), Tuning: c.cfg.Tuning, cluster: c, index: -1, place: append([]string{}, place...)}
	n.Move(t)
	return n
}

// Impostor prepares a second process of n: other addresses, the same tag, list
// of peers and overrides, and the data directory dir.
func (n *Node) Impostor(t testing.TB, dir string) *Node {
	t.Helper()
	i := *n
	i.DataDir, i.Process = dir, nil
	i.Move(t)
	return &i
}

// Certify makes the node show the certificate with this name.
func (n *Node) Certify(name string) { n.cert = name }

// Move gives the node other addresses, for its next start.
func (n *Node) Move(t testing.TB) {
	t.Helper()
	n.GRPC, n.Raft, n.HTTP = freeport.For(t), freeport.For(t), freeport.For(t)
	n.Client = Dial(t, n.GRPC, n.cluster.cfg.Certs)
}

// Settled waits until the node is ready, and fills in the tag it was given.
func (n *Node) Settled(t testing.TB) {
	t.Helper()
	n.WaitReady(t)
	Eventually(t, 5*time.Second, "a tag", func(ctx context.Context) error {
		s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		if err == nil {
			n.Tag = s.Self.Tag
		}
		return err
	})
}

// CopyData copies the data directory of a running node as it is at one moment,
// and returns the copy.
func (n *Node) CopyData(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	n.Process.Signal(t, syscall.SIGSTOP)
	defer n.Process.Signal(t, syscall.SIGCONT)
	n.awaitStopped(t)
	if err := os.CopyFS(dir, os.DirFS(n.DataDir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// awaitStopped waits until the kernel has stopped every thread of the process.
func (n *Node) awaitStopped(t testing.TB) {
	t.Helper()
	Eventually(t, 5*time.Second, "the process has stopped", func(context.Context) error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", n.Process.Pid()))
		if err != nil || len(threads) == 0 {
			return fmt.Errorf("no threads: %w", err)
		}
		for _, path := range threads {
			stat, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			// The state follows the name, which is in parentheses.
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return fmt.Errorf("%s: %s", path, stat)
			}
		}
		return nil
	})
}
