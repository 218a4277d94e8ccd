package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
)

// named returns a cluster with an id of its own.
func named(t *testing.T, id string, size int) *fakeCluster {
	t.Helper()
	f := newCluster(t, size)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.id = id
	return f
}

// took says whether a call reached one of the cluster's nodes.
func (c *fakeCluster) took() bool {
	for _, n := range c.nodes {
		if len(n.requests()) > 0 {
			return true
		}
	}
	return false
}

// switchboard connects to the address it is set to, instead of the dialled one.
type switchboard struct {
	mu    sync.Mutex
	to    string
	conns []net.Conn
}

func (s *switchboard) dial(ctx context.Context, _ string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.to)
	if err == nil {
		s.conns = append(s.conns, conn)
	}
	return conn, err
}

// lead breaks all connections and leads the next ones to another address.
func (s *switchboard) lead(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// TestANodeOfAnotherClusterTakesAnAddress: the client knows its cluster from the first
// answer, and gives nothing of another that is found at the same address later.
func TestANodeOfAnotherClusterTakesAnAddress(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		own, other := named(t, "own", 1), named(t, "other", 1)
		line := &switchboard{to: own.nodes[0].addr}
		cfg.Endpoints, cfg.Dial = []string{"node:7400"}, line.dial
		c := connect(t, cfg)
		templates := []string{"orders|", "users/"}
		for _, template := range templates {
			if _, err := c.Next(t.Context(), template); err != nil {
				t.Fatal(err)
			}
		}
		line.lead(other.nodes[0].addr)
		for _, template := range templates {
			id, err := c.Next(t.Context(), template)
			if !errors.Is(err, client.ErrOtherCluster) || !strings.Contains(err.Error(), "node:7400") ||
				!strings.Contains(err.Error(), "own") || !strings.Contains(err.Error(), "other") {
				t.Errorf("%s: %q, %v", template, id, err)
			}
		}
		line.lead(own.nodes[0].addr)
		if id, err := c.Next(t.Context(), "orders|"); err != nil || id != "orders/2" {
			t.Errorf("back at its own cluster: %q, %v", id, err)
		}
	})
}

// TestACallInFlightAsAnotherClusterTakesTheAddress: a node that stops answers the calls that
// it has, while the next connection leads to another cluster, which refuses others. The answer
// counts: the call names its cluster.
func TestACallInFlightAsAnotherClusterTakesTheAddress(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		own, other := named(t, "own", 1), named(t, "other", 1)
		line := &switchboard{to: own.nodes[0].addr}
		cfg.Endpoints, cfg.Dial, cfg.Timeout, cfg.TryTimeout = []string{"node:7400"}, line.dial, 20*time.Second, 20*time.Second
		c := connect(t, cfg)
		if _, err := c.Next(t.Context(), "orders|"); err != nil {
			t.Fatal(err)
		}
		begun, release := own.nodes[0].hold()
		ended := make(chan error, 1)
		go func() {
			_, err := c.Next(t.Context(), "orders|")
			ended <- err
		}()
		<-begun
		line.mu.Lock()
		line.to = other.nodes[0].addr
		line.mu.Unlock()
		go own.nodes[0].server.GracefulStop()
		for {
			// Until the client notices that the node has stopped, it still calls it.
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := c.Identity("orders").Get(ctx)
			cancel()
			if errors.Is(err, client.ErrOtherCluster) {
				break
			}
		}
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("error %v", err)
		}
		own.mu.Lock()
		defer own.mu.Unlock()
		if own.values["orders"] != 2 {
			t.Errorf("the last value in its own cluster: %d", own.values["orders"])
		}
	})
}

// TestEndpointsOfTwoClusters: of the endpoints only those of the cluster that is meant
// are called, whichever comes first and whichever leads.
func TestEndpointsOfTwoClusters(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		own, other := named(t, "own", 2), named(t, "other", 2)
		own.lead("B")
		cfg.Endpoints = append(other.addrs(), own.addrs()...)
		cfg.ClusterID = "own"
		c := connect(t, cfg)
		for _, template := range []string{"orders|", "users/", "orders|"} {
			if _, err := c.Next(t.Context(), template); err != nil {
				t.Error(template, err)
			}
		}
		if other.took() {
			t.Error("a call was sent to the other cluster")
		}
	})
}

// TestAPinnedClusterThatIsNotThere: the error says so, also where some of the endpoints
// do not answer. Where all do, it does not wait until its time is over.
func TestAPinnedClusterThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		down    int
		timeout time.Duration
	}{
		"all endpoints answer":          {0, time.Hour},
		"a node of two does not answer": {1, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			other := named(t, "other", 2)
			for _, n := range other.nodes[:tt.down] {
				n.server.Stop()
			}
			c := connect(t, client.Config{Endpoints: other.addrs(), ClusterID: "own", Timeout: tt.timeout})
			if _, err := c.Identity("orders").Next(t.Context()); !errors.Is(err, client.ErrOtherCluster) {
				t.Errorf("error %v", err)
			}
			if other.took() {
				t.Error("a call was sent to the other cluster")
			}
		})
	}
}

// refusals returns a dialler, and a channel that tells of each of its dials that failed.
func refusals() (dial func(context.Context, string) (net.Conn, error), failed <-chan error) {
	told := make(chan error)
	return func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			select {
			case told <- err:
			case <-ctx.Done():
			}
		}
		return conn, err
	}, told
}

// TestAnswersOfANodeThatStops: a node that stops answers the calls in flight, and accepts no
// connection. Another call's failed dial does not make those answers unknown: they came over a
// connection whose cluster is known.
func TestAnswersOfANodeThatStops(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		own := named(t, "own", 1)
		var failed <-chan error
		cfg.Dial, failed = refusals()
		cfg.Endpoints, cfg.Timeout, cfg.TryTimeout = own.addrs(), 20*time.Second, 20*time.Second
		c := connect(t, cfg)
		if _, err := c.Next(t.Context(), "orders|"); err != nil {
			t.Fatal(err)
		}
		begun, release := own.nodes[0].hold()
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		defer calls.Wait()
		defer cancel()
		calls.Go(func() {
			defer cancel()
			if _, err := c.Next(t.Context(), "orders|"); err != nil {
				t.Errorf("the call in flight: %v", err)
			}
		})
		<-begun
		go own.nodes[0].server.GracefulStop()
		calls.Go(func() {
			for ctx.Err() == nil { // The first may go before the client hears of the stop.
				short, done := context.WithTimeout(ctx, 100*time.Millisecond)
				_, _ = c.Next(short, "invoices|")
				done()
			}
		})
		for range 2 { // The second dial begins when the client has taken in that the first failed.
			<-failed
		}
		close(release)
		<-ctx.Done()
	})
}
