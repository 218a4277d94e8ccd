package client_test

import (
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client"
)

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
	b := &switchboard{to: f.nodes[0].addr}
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
