package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// TestSetEndpoints: the cluster has moved to other nodes, and the old ones are gone.
func TestSetEndpoints(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 4)
		old, moved := f.nodes[:2], f.nodes[2:]
		f.nodes = old
		cfg.Endpoints, cfg.ClusterID = f.addrs(), f.id
		c := connect(t, cfg)
		wantNext(t, c, 1)
		f.mu.Lock()
		f.nodes, f.leader = moved, "D"
		f.mu.Unlock()
		if err := c.SetEndpoints([]string{" " + moved[0].addr}); err != nil {
			t.Fatal(err)
		}
		for _, n := range old {
			n.server.Stop()
		}
		for want := range int64(20) {
			wantNext(t, c, want+2)
		}
		for _, wrong := range [][]string{nil, {"a"}} {
			if err := c.SetEndpoints(wrong); err == nil {
				t.Errorf("%q are taken", wrong)
			}
		}
		client.Look(c)
		if got := c.String(); !strings.Contains(got, moved[0].addr+" with leader "+moved[1].addr) {
			t.Error(got)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.SetEndpoints(f.addrs()); !errors.Is(err, client.ErrClosed) || !strings.HasSuffix(c.String(), "closed") {
			t.Error(err, c)
		}
	})
}

// TestSetEndpointsUnderLoad: calls go on while the endpoints change all the time; no number is lost or comes twice.
func TestSetEndpointsUnderLoad(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 3)
		cfg.Endpoints = f.addrs()
		c := connect(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				f.lead(f.nodes[(i+1)%3].tag)
				if err := c.SetEndpoints([]string{f.addrs()[i%3]}); err != nil {
					done <- err
				}
				client.Look(c)
			}
		}()
		for want := range int64(500) {
			wantNext(t, c, want+1)
		}
		cancel()
		for err := range done {
			t.Error(err)
		}
	})
}

// TestLearntAddresses: they stand in for endpoints that are all gone, and are forgotten once the cluster no longer
// names them; one of another cluster gets no call.
func TestLearntAddresses(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 3)
	foreign := newCluster(t, 1)
	foreign.id = "another"
	f.nodes[0].describe(func(s *idnodev1.GetStatusResponse) {
		s.Members = append(s.Members, &idnodev1.Member{Tag: "F", GrpcAddress: foreign.nodes[0].addr},
			&idnodev1.Member{Tag: "N", GrpcAddress: "no address"},
			&idnodev1.Member{Tag: "W", GrpcAddress: "watcher:7400", Role: idnodev1.Role_ROLE_WATCHER},
			&idnodev1.Member{Tag: "R", GrpcAddress: "removed:7400", Role: idnodev1.Role_ROLE_REMOVED})
	})
	c := connect(t, client.Config{Endpoints: f.addrs()[:1], ClusterID: f.id, Unshared: true})
	if learnt := client.Learnt(c); len(learnt) != 3 {
		t.Fatalf("the client has learnt %q", learnt)
	}
	f.lead("B")
	f.nodes[0].server.Stop()
	for want := range int64(5) {
		wantNext(t, c, want+1)
		if _, err := c.Next(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(foreign.nodes[0].requests()); n != 0 {
		t.Errorf("a node of another cluster got %d calls", n)
	}
	f.mu.Lock()
	f.nodes = f.nodes[1:2]
	f.mu.Unlock()
	client.Look(c)
	if learnt := client.Learnt(c); fmt.Sprint(learnt) != fmt.Sprint(f.addrs()) {
		t.Errorf("the client still has %q", learnt)
	}
}

// TestFailFastAfter: in an outage one call a second is tried, and all are once a node answers.
func TestFailFastAfter(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 1)
	var seen events
	b := &switchboard{to: "127.0.0.1:1"}
	c := connect(t, client.Config{
		Endpoints: []string{"node:7400"}, Dial: b.dial, FailFastAfter: time.Nanosecond, Observe: seen.add,
	})
	fast := 0
	for range 200 {
		before := len(seen.of(client.EventTry))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := c.Claim(ctx, "one")
		cancel()
		if err == nil || errors.Is(err, client.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if errors.Is(err, client.ErrNoEndpoint) && strings.Contains(err.Error(), "was not tried") && len(seen.of(client.EventTry)) == before {
			fast++
		}
	}
	if fast < 100 {
		t.Errorf("%d of 200 calls failed at once", fast)
	}
	b.lead(f.nodes[0].addr)
	for client.Look(c); client.InOutage(c); client.Look(c) {
		if t.Context().Err() != nil {
			t.Fatal("the node is not found again")
		}
	}
	for i := range 10 {
		if err := c.Claim(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
}
