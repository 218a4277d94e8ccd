package client_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client"
)

// spanKey is the key of the caller's span in the context of a test's call.
type spanKey struct{}

func spanOf(ctx context.Context) string {
	span, _ := ctx.Value(spanKey{}).(string)
	return span
}

// TestTraceParent: each call names the span of its caller, in an Exchange and in gRPC's metadata.
func TestTraceParent(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		f := newCluster(t, 1)
		cfg.Endpoints, cfg.TraceParent = f.addrs(), spanOf
		c := connect(t, cfg)
		for _, span := range []string{"one", "", "two"} {
			ctx := context.WithValue(t.Context(), spanKey{}, span)
			_, err1 := c.Identity("orders").Next(ctx)
			_, err2 := c.Identity("orders").Get(ctx)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
		}
		if diff := cmp.Diff([]string{"one", "one", "", "", "two", "two"}, f.nodes[0].spans()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTraceParentOfASharedCall is that of the first of its callers that has one.
func TestTraceParentOfASharedCall(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs(), TraceParent: spanOf})
	begun, release := f.nodes[0].hold()
	var callers sync.WaitGroup
	for i, span := range []string{"alone", "", "two", "three"} {
		callers.Go(func() {
			if _, err := c.Identity("orders").Next(context.WithValue(t.Context(), spanKey{}, span)); err != nil {
				t.Error(err)
			}
		})
		<-begun
		for client.Waiting(c) < i {
			time.Sleep(time.Millisecond)
		}
	}
	close(release)
	callers.Wait()
	if got := f.nodes[0].spans(); !slices.Equal(got, []string{"alone", "two"}) {
		t.Errorf("%q", got)
	}
}
