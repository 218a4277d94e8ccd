package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	goclient "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// newClient returns a client of these nodes.
func newClient(t *testing.T, nodes ...*harness.Node) *goclient.Client {
	t.Helper()
	var endpoints []string
	for _, n := range nodes {
		endpoints = append(endpoints, n.GRPC)
	}
	c, err := goclient.New(t.Context(), goclient.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

func closeClient(t *testing.T, c *goclient.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("closing a client: %v", err)
	}
}

// TestClientDuringFailovers kills leaders under callers of the Go client, and
// then cuts one off: no caller sees an error, and the identity has exactly as
// many values as there were calls.
func TestClientDuringFailovers(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	stop := callThroughClients(t, c, ledger)
	for range cycles(t, 2) {
		leader := c.Leader(t)
		moreThan(t, ledger, "called", 100)
		leader.Process.Kill()
		moreThan(t, ledger, "called", 100)
		leader.Start(t)
		c.WaitReady(t)
	}
	c.Isolate(c.Leader(t))
	moreThan(t, ledger, "called", 3000)
	c.Heal()
	c.WaitReady(t)
	stop()
	if n, greatest := ledger.Count("called"), ledger.Max("called"); n != greatest {
		t.Errorf("%d calls were answered, but the counter is at %d", n, greatest)
	}
	c.Agree(t)
}

// callThroughClients has a client for each node, and callers of each, take
// values until stop is called, which waits for them.
func callThroughClients(t *testing.T, c *harness.Cluster, ledger *harness.Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range c.Nodes {
		cl := newClient(t, append(c.Nodes[i:len(c.Nodes):len(c.Nodes)], c.Nodes[:i]...)...)
		for k := range 8 {
			callers.Go(func() {
				for ctx.Err() == nil {
					v, err := cl.Identity("called").Next(context.Background())
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					ledger.Record("called", fmt.Sprintf("caller %d of client %d", k, i), v, v)
				}
			})
		}
	}
	stop = func() { cancel(); callers.Wait() }
	t.Cleanup(stop)
	return stop
}

// moreThan waits until the counter has given n more numbers.
func moreThan(t *testing.T, ledger *harness.Ledger, counter string, n int64) {
	t.Helper()
	before := ledger.Count(counter)
	harness.Eventually(t, 15*time.Second, "more numbers of "+counter, func(context.Context) error {
		if got := ledger.Count(counter) - before; got < n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
}

// TestClientHandles restarts three clients one after the other, again and again,
// in the middle of their ranges: no number comes twice, and none is missing.
func TestClientHandles(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	for round := range 3 {
		var clients []*goclient.Client
		for range c.Nodes {
			clients = append(clients, newClient(t, c.Nodes...))
		}
		for i, cl := range clients {
			useHandle(t, cl, ledger, fmt.Sprintf("client %d in round %d", i, round), 500+100*i)
			// Each begins where the one before it gave the rest back.
			closeClient(t, cl)
		}
	}
	if n, greatest := ledger.Count("users"), ledger.Max("users"); n != greatest {
		t.Errorf("%d numbers were taken, the greatest is %d", n, greatest)
	}
}

// TestClientHandlesTogether has three clients use the same collection at the
// same time while the leader is killed: no number comes twice, no call fails.
func TestClientHandlesTogether(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	var users sync.WaitGroup
	for i := range c.Nodes {
		cl := newClient(t, append(c.Nodes[i:len(c.Nodes):len(c.Nodes)], c.Nodes[:i]...)...)
		users.Go(func() { useHandle(t, cl, ledger, fmt.Sprintf("client %d", i), 20_000) })
	}
	leader := c.Leader(t)
	moreThan(t, ledger, "users", 1000)
	leader.Process.Kill()
	users.Wait()
	leader.Start(t)
	c.WaitReady(t)
	if n := ledger.Count("users"); n != 60_000 {
		t.Errorf("%d different numbers", n)
	}
}

// useHandle takes n numbers with several goroutines.
func useHandle(t *testing.T, cl *goclient.Client, ledger *harness.Ledger, who string, n int) {
	g := cl.HiLo("users")
	const goroutines = 10
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range n / goroutines {
				number, err := g.Next(context.Background())
				if err != nil {
					t.Errorf("%s: %v", who, err)
					return
				}
				ledger.Record("users", who, number.Value(), number.Value())
			}
		})
	}
	wg.Wait()
}
