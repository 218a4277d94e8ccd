package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestHiLoReturns lets clients take ranges, use a part of them and give the
// rest back, honestly and not: late, repeated, foreign, below the range, and
// racing with the next range. No number may be used by two.
func TestHiLoReturns(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() { client(t, c, ledger, i) })
	}
	clients.Wait()
	c.Agree(t)
}

// client takes 40 ranges and returns them in all the ways a client can.
func client(t *testing.T, c *harness.Cluster, ledger *harness.Ledger, i int) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	rnd := rand.New(rand.NewPCG(1, uint64(i)))
	who := fmt.Sprintf("client %d", i)
	var old []*idnodev1.ReturnRangeRequest
	for range 40 {
		n := c.Nodes[rnd.IntN(len(c.Nodes))]
		r, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "users"})
		if err != nil {
			t.Errorf("%s: %v", who, err)
			return
		}
		last := r.Low - 1 + rnd.Int64N(r.High-r.Low+2)
		ledger.Record("users", who, r.Low, last)
		back := &idnodev1.ReturnRangeRequest{Tag: "Users", Low: r.Low, High: r.High, Last: last, Token: r.Token}
		old = append(old, back)
		for _, bad := range dishonest(rnd, back, old) {
			// What it answers does not matter: the ledger finds what goes wrong.
			c.Nodes[rnd.IntN(len(c.Nodes))].Ids.ReturnRange(ctx, bad)
		}
		if rnd.IntN(4) > 0 {
			if _, err := n.Ids.ReturnRange(ctx, back); err != nil {
				t.Errorf("%s: return: %v", who, err)
			}
		}
	}
}

// dishonest makes returns that must not be believed.
func dishonest(rnd *rand.Rand, present *idnodev1.ReturnRangeRequest, old []*idnodev1.ReturnRangeRequest) []*idnodev1.ReturnRangeRequest {
	below := proto.CloneOf(present)
	below.Last = present.Low - 1 - rnd.Int64N(40) - 1
	foreign := proto.CloneOf(present)
	foreign.Token = []byte("12345678")
	foreign.Last = present.Low - 1
	nameless := proto.CloneOf(present)
	nameless.Token, nameless.Last = nil, present.Low-1
	// A return of an earlier range, late or again: it lies below the newest.
	late := proto.CloneOf(old[rnd.IntN(len(old))])
	if late.Low == present.Low {
		return []*idnodev1.ReturnRangeRequest{below, foreign, nameless}
	}
	return []*idnodev1.ReturnRangeRequest{below, foreign, nameless, late, late}
}

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
