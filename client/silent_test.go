package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// freezing returns the option of a node that answers nothing while frozen is set.
func freezing(frozen *atomic.Bool) []grpc.ServerOption {
	held := func(ctx context.Context) {
		if frozen.Load() {
			<-ctx.Done()
		}
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		held(ctx)
		return handler(ctx, req)
	})}
}

// TestOthersThatAreSlow: the leader freezes with a call under way. The others need 250 ms to say who leads,
// which is longer than the leader gets for an answer; the call does not wait for the end of its try.
func TestOthersThatAreSlow(t *testing.T) {
	t.Parallel()
	for _, unshared := range []bool{false, true} {
		for _, delays := range [][2]time.Duration{{0, 0}, {250 * time.Millisecond, 0}, {250 * time.Millisecond, 250 * time.Millisecond}} {
			t.Run(fmt.Sprintf("unshared=%t,%v", unshared, delays), func(t *testing.T) {
				t.Parallel()
				f := newCluster(t, 0)
				var frozen atomic.Bool
				a := &fakeNode{fakeCluster: f, tag: "A"}
				a.start(t, freezing(&frozen)...)
				f.nodes = append(f.nodes, a)
				for i, delay := range delays {
					n := &fakeNode{fakeCluster: f, tag: string(rune('B' + i))}
					n.start(t)
					n.describe(func(*idnodev1.GetStatusResponse) { time.Sleep(delay) })
					f.nodes = append(f.nodes, n)
				}
				c := connect(t, client.Config{Endpoints: f.addrs(), Unshared: unshared, TryTimeout: time.Minute, Timeout: time.Minute})
				a.hook(func(ctx context.Context, r proto.Message) error {
					frozen.Store(true)
					f.lead("B")
					return hang(ctx, r)
				}, nil)
				began := time.Now()
				wantNext(t, c, 1)
				// Without the check it is a minute; without waiting for the others 1.3 s, or never.
				t.Log(time.Since(began))
				if n := len(a.requests()); n != 1 {
					t.Errorf("the frozen node was asked %d times", n)
				}
			})
		}
	}
}

// TestALookEndsTriesAtSilentNodes: tries that are too young to have asked end with the others, once a look has
// found that another node leads, and their node has had its time for an answer.
func TestALookEndsTriesAtSilentNodes(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 0)
	var frozen atomic.Bool
	a := &fakeNode{fakeCluster: f, tag: "A"}
	a.start(t, freezing(&frozen)...)
	b := &fakeNode{fakeCluster: f, tag: "B"}
	b.start(t)
	f.nodes = []*fakeNode{a, b}
	c := connect(t, client.Config{Endpoints: f.addrs(), TryTimeout: time.Minute, Timeout: time.Minute})
	client.Age(c, time.Minute)
	begun := make(chan struct{})
	a.hook(func(ctx context.Context, r proto.Message) error {
		frozen.Store(true)
		f.lead("B")
		close(begun)
		return hang(ctx, r)
	}, nil)
	done := make(chan error)
	go func() {
		_, err := c.Identity("orders").Next(t.Context())
		done <- err
	}()
	<-begun
	client.Look(c) // As another call's failure begins it.
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(30 * time.Second)
	// A call that leaves by itself leaves the stream as it is.
	for !client.Broken(c, a.addr) {
		if <-time.After(time.Millisecond); time.Now().After(end) {
			t.Fatal("the stream to the silent node goes on")
		}
	}
}

// TestFarNodesKeepTheirStreams: where each node needs long for an answer, one that is a little later than the
// first is not silent.
func TestFarNodesKeepTheirStreams(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 2)
	a, b := f.nodes[0], f.nodes[1]
	c := connect(t, client.Config{Endpoints: []string{b.addr, a.addr}, TryTimeout: time.Minute, Timeout: time.Minute})
	if _, err := c.Next(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n := len(b.requests()); n != 1 {
		t.Fatalf("the node got %d calls", n)
	}
	client.Age(c, time.Minute)
	first, second := make(chan struct{}), make(chan struct{})
	answered, later := sync.OnceFunc(func() { close(first) }), sync.OnceFunc(func() { close(second) })
	a.describe(func(*idnodev1.GetStatusResponse) {
		time.Sleep(500 * time.Millisecond)
		answered()
	})
	b.describe(func(*idnodev1.GetStatusResponse) {
		<-first
		time.Sleep(100 * time.Millisecond)
		later()
	})
	client.Look(c)
	if <-second; client.Broken(c, b.addr) {
		t.Error("the stream to a far node is broken")
	}
}
