package client_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client"
)

// balancer leads new connections to its target.
type balancer struct {
	mu     sync.Mutex
	target string
	newest net.Conn
}

func (b *balancer) dial(ctx context.Context, _ string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", b.target)
	b.newest = conn
	return conn, err
}

// lead has the connection made again, to another target.
func (b *balancer) lead(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.target = target
	_ = b.newest.Close()
}

// TestABalancerWithoutANode refuses calls for a while: they are repeated until it has one again.
func TestABalancerWithoutANode(t *testing.T) {
	f := newCluster(t, 1)
	refused := make(chan struct{})
	once := sync.OnceFunc(func() { close(refused) })
	observe := func(e client.Event) {
		if e.Kind == client.EventTry && e.Err != nil && strings.Contains(e.Err.Error(), "404") {
			once()
		}
	}
	empty := &fakeNode{fakeCluster: f}
	empty.serve(t, grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.Unimplemented, "unexpected HTTP status code received from server: 404 (Not Found)")
	})))
	b := &balancer{target: f.nodes[0].addr}
	c := connect(t, client.Config{Endpoints: []string{"balancer:7400"}, Dial: b.dial, Observe: observe, Unshared: true})
	if err := c.Claim(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	b.lead(empty.addr)
	ended := make(chan error, 1)
	go func() { ended <- c.Claim(t.Context(), "two") }()
	<-refused
	b.lead(f.nodes[0].addr)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
