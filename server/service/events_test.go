package service

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// TestEvents: each use case reports its events once, with the caller's outcome.
func TestEvents(t *testing.T) {
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	n := newNode(t, newWorld(t), func(c *Config) {
		c.MaxInFlight = 1
		c.Events = Events{
			Issued:        func(db string, kind docid.Kind, n int64) { tell("%s: %d %s", db, n, kind) },
			RangeIssued:   func(db string, numbers int64) { tell("%s: a range of %d", db, numbers) },
			NumbersTaken:  func(db string, n int64) { tell("%s: %d numbers", db, n) },
			Used:          func(kind, db, name string, n int64) { tell("%s: %d of %s %s", db, n, kind, name) },
			RangeReturned: func(db string, numbers int64) { tell("%s: %d came back", db, numbers) },
			BackedUp:      func() { tell("a backup") },
			Refused:       func(reason string) { tell("refused: %s", reason) },
		}
	})
	ctx := context.Background()
	generate := func(template string, count int64) func() {
		return func() {
			_, _ = n.Generate(ctx, &idnodev1.GenerateRequest{Database: "Shop", Template: template, Count: count})
		}
	}
	next := func(names ...string) func() {
		return func() {
			var reqs []*idnodev1.NextIdentityRequest
			for _, name := range names {
				reqs = append(reqs, &idnodev1.NextIdentityRequest{Name: name, Count: 2})
			}
			_, _ = n.NextIdentities(ctx, reqs)
		}
	}
	for _, tc := range []struct {
		what string
		call func()
		want []string
	}{
		{"GUIDs", generate("", 2), []string{"shop: 2 guid"}},
		{"server-side ids", generate("users/", 3), []string{"shop: 3 server-side", "shop: 3 of server-side users/"}},
		{"identities", generate("users|", 4), []string{"shop: 4 identity", "shop: 4 of identity users"}},
		{"a semantic id", generate("users/ayende", 1), []string{"shop: 1 semantic"}},
		{"values", func() {
			_, _ = n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "users"})
		}, []string{"default: 1 identity", "default: 1 of identity users"}},
		{"a bad template", generate(`\`, 1), []string{"refused: INVALID_ID"}},
		{"one bad name", next("|"), []string{"refused: INVALID_NAME"}},
		{"one too many of several", next("a", "b"), []string{"default: 2 identity", "default: 2 of identity a", "refused: OVERLOADED"}},
		{"a range and its return", func() {
			r, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "Orders"})
			if err != nil {
				t.Fatal(err)
			}
			back := &idnodev1.ReturnRangeRequest{Tag: "orders", Low: r.Low, High: r.High, Last: proto.Int64(r.Low + 1), Token: r.Token}
			_, _ = n.ReturnRange(ctx, back)
			_, _ = n.ReturnRange(ctx, back)
		}, []string{"default: a range of 32", "default: 32 of hilo orders", "default: 30 came back"}},
		{"a claim, twice", func() {
			_, _ = n.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/oren"})
			_, _ = n.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/oren"})
		}, []string{"default: 1 semantic", "refused: ID_CLAIMED"}},
		{"document numbers", func() {
			_, err := n.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{
				Name: "Bills", Definition: &idnodev1.SeriesDefinition{Format: "{number}"},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = n.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "Bills", Keys: []string{"a", "b"}})
		}, []string{"default: 2 numbers", "default: 2 of series bills"}},
		{"a backup", func() { _ = n.Backup(ctx, stale, io.Discard) }, []string{"a backup"}},
		{"a backup that nobody takes", func() { _ = n.Backup(ctx, stale, brokenWriter{10}) }, []string{"refused: STOPPING"}},
		{"a call while stopping", func() {
			_ = n.Drain(ctx)
			generate("", 1)()
		}, []string{"refused: STOPPING"}},
	} {
		told = nil
		tc.call()
		if diff := cmp.Diff(tc.want, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.what, diff)
		}
	}
}
