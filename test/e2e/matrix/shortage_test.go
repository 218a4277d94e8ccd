package matrix

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// littleMemory is the bound that the nodes' garbage collector is given, and
	// maxShortMemory what a node may come to beside it: it is a wish, not a wall.
	littleMemory   = "48MiB"
	maxShortMemory = 160 << 20
	// fewCalls is what a node takes at once, three quarters of them from one caller, which all
	// are here, and manyCallers are far more for each.
	fewCalls    = 32
	manyCallers = 96
	// fewFiles are hardly more than a node has open, filesForCallers what of them it
	// does not keep back; manyConnections are more.
	fewFiles        = 40
	filesForCallers = fewFiles * 3 / 4
	manyConnections = 100
)

// TestF18Shortage gives the nodes little memory, a garbage collector that hardly
// rests and one processor, and lets many more call than they take; then one node
// after the other has no file left to open for new connections. What is too much
// is refused, and the rest goes on.
func TestF18Shortage(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{Flags: []string{"--max-in-flight", fmt.Sprint(fewCalls)}, Tuning: snapshotOften})
	for _, n := range c.Nodes {
		n.Env = []string{"GOMEMLIMIT=" + littleMemory, "GOGC=5", "GOMAXPROCS=1"}
		n.Start(t)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	for range r.cycles(t, 1, 30) {
		r.traffic.Thick(t)
		crowd := r.traffic.Crowd(manyCallers)
		awaitRefusals(t, r, "OVERLOADED")
		r.traffic.Thick(t)
		crowd()
		for _, n := range c.Nodes {
			if bytes := n.Process.Memory(t); bytes > maxShortMemory {
				t.Errorf("node %s has %d MB in memory", n.Tag, bytes>>20)
			}
		}
		for i, n := range c.Nodes {
			r.traffic.Thick(t)
			w := r.Watch(c.Nodes[(i+1)%3])
			n.Process.LimitFiles(t, fewFiles)
			crowded := connect(t, n)
			harness.Eventually(t, 10*time.Second, "a node without a file left", func(context.Context) error {
				if open := n.Process.OpenFiles(t); open < filesForCallers {
					return fmt.Errorf("%d of %d files are open", open, filesForCallers)
				}
				return nil
			})
			r.traffic.Thick(t)
			if s := w.Seen(); s.Refused > 0 {
				t.Errorf("%d calls on another node failed when node %s had no files left", s.Refused, n.Tag)
			}
			for _, conn := range crowded {
				conn.Close()
			}
			n.Process.LimitFiles(t, 1024)
			c.WaitReady(t)
		}
	}
	r.ends(t)
}

// connect opens many connections to a node, and returns those that the machine let
// it open; the node takes no more than it has files for.
func connect(t *testing.T, n *harness.Node) (open []net.Conn) {
	t.Helper()
	dialer := net.Dialer{Timeout: 200 * time.Millisecond}
	for range manyConnections {
		conn, err := dialer.DialContext(context.Background(), "tcp", n.GRPC)
		if err != nil {
			break
		}
		open = append(open, conn)
	}
	if len(open) < manyConnections/2 {
		t.Errorf("only %d connections could be opened", len(open))
	}
	return open
}
