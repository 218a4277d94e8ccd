package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestHiLoPrefetchedRangeFirst: a client that gives back its prefetched range
// and then the rest of its current one leaves no hole.
func TestHiLoPrefetchedRangeFirst(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ids := c.Nodes[1].Ids
	next := func() *idnodev1.NextRangeResponse {
		t.Helper()
		r, err := ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	giveBack := func(r *idnodev1.NextRangeResponse, last int64, want bool) {
		t.Helper()
		got, err := ids.ReturnRange(ctx, &idnodev1.ReturnRangeRequest{Tag: "orders", Low: r.Low, High: r.High, Last: last, Token: r.Token})
		if err != nil || got.Returned != want {
			t.Fatalf("return of %d-%d up to %d: %v %v, want returned %t", r.Low, r.High, last, got, err, want)
		}
	}
	current, prefetched := next(), next()
	giveBack(prefetched, prefetched.Low-1, true)
	giveBack(prefetched, prefetched.Low-1, false)
	giveBack(current, current.Low+9, true)
	giveBack(current, current.Low+9, false)
	if r := next(); r.Low != current.Low+10 || r.High <= prefetched.High {
		t.Errorf("after the returns came %d-%d, want from %d to beyond %d", r.Low, r.High, current.Low+10, prefetched.High)
	}
}
