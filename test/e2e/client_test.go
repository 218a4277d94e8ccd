package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	goclient "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
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
// then cuts one off: no caller sees an error, the identity has exactly as many
// values as there were calls, and no number of the ranges comes twice.
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

// callThroughClients has a client for each node, and callers of each, take a value of an
// identity and a number of a shared range by turns until stop is called, which
// waits for them and closes the clients.
func callThroughClients(t *testing.T, c *harness.Cluster, ledger *harness.Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	var clients []*goclient.Client
	for i := range c.Nodes {
		cl := newClient(t, append(c.Nodes[i:len(c.Nodes):len(c.Nodes)], c.Nodes[:i]...)...)
		clients = append(clients, cl)
		for k := range 8 {
			who := fmt.Sprintf("caller %d of client %d", k, i)
			callers.Go(func() {
				for ctx.Err() == nil {
					v, err := cl.Identity("called").Next(context.Background())
					number, failed := cl.HiLo("users").Next(context.Background())
					if err := errors.Join(err, failed); err != nil {
						t.Errorf("%s: %v", who, err)
						return
					}
					ledger.Record("called", who, v, v)
					ledger.Record("users", who, number.Value(), number.Value())
				}
			})
		}
	}
	t.Cleanup(cancel)
	return func() {
		cancel()
		callers.Wait()
		for _, cl := range clients {
			closeClient(t, cl)
		}
	}
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
