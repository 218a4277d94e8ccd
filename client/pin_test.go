package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// TestContradictingEndpoints: a client that does not say its cluster gets nothing from endpoints of
// two, whichever of them come first, lead and answer first.
func TestContradictingEndpoints(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		own, other := named(t, "own", 2), named(t, "other", 1)
		a, b, c := own.nodes[0].addr, own.nodes[1].addr, other.nodes[0].addr
		for _, endpoints := range [][]string{{a, c}, {c, a}, {b, c}, {c, b}, {a, b, c}, {a, c, b}, {c, a, b}, {b, a, c}, {b, c, a}, {c, b, a}} {
			for _, template := range []string{"orders|", "users/", ""} { // A fresh client has its first call of each kind.
				cfg.Endpoints = endpoints
				cl := connect(t, cfg)
				for range 2 {
					id, err := cl.Next(t.Context(), template)
					if !errors.Is(err, client.ErrOtherCluster) || errors.Is(err, client.ErrOutcomeUnknown) ||
						!strings.Contains(err.Error(), "own") || !strings.Contains(err.Error(), "other") {
						t.Errorf("%q of %q: %q, %v", template, endpoints, id, err)
					}
				}
			}
		}
		if own.took() || other.took() {
			t.Error("a call was sent")
		}
	})
}

// gates refuse connections to the addresses that are not open.
type gates struct {
	mu   sync.Mutex
	open map[string]bool
}

func openOnly(addresses ...string) *gates {
	g := &gates{open: map[string]bool{}}
	g.let(addresses...)
	return g
}

func (g *gates) let(addresses ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range addresses {
		g.open[a] = true
	}
}

func (g *gates) dial(ctx context.Context, address string) (net.Conn, error) {
	g.mu.Lock()
	open := g.open[address]
	g.mu.Unlock()
	if !open {
		return nil, errors.New("nobody is there")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// logged is a log that may be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// until makes calls until one fails, or has an id, as done says.
func until(t *testing.T, c *client.Client, done func(id string, err error) bool) {
	t.Helper()
	for {
		id, err := c.Next(t.Context(), "orders|")
		if done(id, err) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		client.Age(c, 6*time.Second) // It looks again.
	}
}

// TestTheOnlyEndpointThatAnswers is taken, and one that is a cluster of one node is named. Another
// cluster at another endpoint, later, ends all calls.
func TestTheOnlyEndpointThatAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		own, other := named(t, "own", 1), named(t, "other", 1)
		for _, first := range []*fakeCluster{own, other} {
			var log logged
			g := openOnly(first.addrs()...)
			cfg.Endpoints, cfg.Dial = append(own.addrs(), other.addrs()...), g.dial
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c := connect(t, cfg)
			for range 2 {
				if id, err := c.Next(t.Context(), "users/"); err != nil || id == "" {
					t.Fatal(id, err)
				}
			}
			if !log.has("level=WARN") || !log.has("a cluster of one node\" node="+first.nodes[0].addr) {
				t.Error("the cluster of one node was not named")
			}
			g.let(cfg.Endpoints...)
			until(t, c, func(_ string, err error) bool { return errors.Is(err, client.ErrOtherCluster) })
			for _, template := range []string{"orders|", "users/"} {
				if id, err := c.Next(t.Context(), template); !errors.Is(err, client.ErrOtherCluster) {
					t.Errorf("%s: %q, %v", template, id, err)
				}
			}
		}
	})
}

// TestAnotherClusterBesideTwoEndpointsThatAgree: what two have said stays, and the third gets nothing.
func TestAnotherClusterBesideTwoEndpointsThatAgree(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		var log logged
		own, other := named(t, "own", 2), named(t, "other", 1)
		g := openOnly(own.addrs()...)
		cfg.Endpoints, cfg.Dial = append(other.addrs(), own.addrs()...), g.dial
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := connect(t, cfg)
		if _, err := c.Next(t.Context(), "orders|"); err != nil {
			t.Fatal(err)
		}
		g.let(other.addrs()...)
		until(t, c, func(_ string, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			return log.has("a node of another cluster gets no calls")
		})
		if other.took() {
			t.Error("a call was sent to the other cluster")
		}
	})
}

// TestTheLogOfAnotherClusterIsForgotten: once the endpoints agree, calls name an index of their log. The
// other cluster's was far ahead, and a request id that names it would be refused as expired.
func TestTheLogOfAnotherClusterIsForgotten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		own := named(t, "own", 2)
		own.nodes[1].describe(func(s *idnodev1.GetStatusResponse) { s.ClusterId, s.AppliedIndex = "other", 1_000_000 })
		cfg.Endpoints = own.addrs()
		c := connect(t, cfg)
		for range 2 {
			if _, err := c.Next(t.Context(), "orders|"); !errors.Is(err, client.ErrOtherCluster) {
				t.Fatal(err)
			}
			client.Age(c, 6*time.Second)
		}
		own.nodes[1].describe(nil)
		until(t, c, func(_ string, err error) bool { return err == nil })
		for _, n := range own.nodes {
			for _, req := range n.requests() {
				if id := req.(interface{ GetRequestId() *idnodev1.RequestId }).GetRequestId(); id.GetRetrySince() > 100 {
					t.Errorf("a call names index %d", id.GetRetrySince())
				}
			}
		}
	})
}

// TestASilentEndpointIsNotWaitedFor for longer than a look lasts, nor at all once the cluster is known.
func TestASilentEndpointIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	own := named(t, "own", 1)
	c := connect(t, client.Config{Endpoints: []string{silent.Addr().String(), own.nodes[0].addr}})
	for range 3 {
		if _, err := c.Next(t.Context(), "orders|"); err != nil {
			t.Fatal(err)
		}
	}
}
