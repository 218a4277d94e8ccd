package service

import (
	"context"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/reserve"
)

// TestOwnReserves: reserves come by database and tag, page by page, and need no quorum.
func TestOwnReserves(t *testing.T) {
	all := []reserve.Left{
		{Database: "shop", Tag: "orders", Numbers: 32, Lasts: time.Minute},
		{Database: "shop", Tag: "books"},
		{Database: "default", Tag: "users", Numbers: 7, Lasts: time.Second},
	}
	w := newWorld(t)
	noQuorum(w)
	n := newNode(t, w, func(c *Config) { c.OwnReserves = func() []reserve.Left { return append([]reserve.Left(nil), all...) } })
	ctx := context.Background()
	page := func(req *idnodev1.ListReservesRequest, want ...reserve.Left) string {
		t.Helper()
		res, err := n.ListReserves(ctx, req)
		if err != nil || res.NodeTag != "A" {
			t.Fatalf("%v: %v", res, err)
		}
		var got []reserve.Left
		for _, r := range res.Reserves {
			got = append(got, reserve.Left{Database: r.Database, Tag: r.Tag, Numbers: r.Numbers, Lasts: r.Lasts.AsDuration()})
		}
		same(t, got, want)
		return res.NextPageToken
	}
	page(&idnodev1.ListReservesRequest{}, all[2], all[1], all[0])
	next := page(&idnodev1.ListReservesRequest{PageSize: 2}, all[2], all[1])
	if last := page(&idnodev1.ListReservesRequest{PageSize: 2, PageToken: next}, all[0]); last != "" {
		t.Errorf("the last page leads on by %q", last)
	}
	_, err := n.ListReserves(ctx, &idnodev1.ListReservesRequest{PageSize: -1})
	wantError(t, err, InvalidArgument, ReasonInvalidPageSize, "page_size")
	if res, err := newNode(t, w, nil).ListReserves(ctx, &idnodev1.ListReservesRequest{}); err != nil || len(res.GetReserves()) != 0 {
		t.Errorf("a node that keeps none: %+v %v", res, err)
	}
}
