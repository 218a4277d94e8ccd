package service

import (
	"context"
	"testing"
	"time"
)

// TestOwnReserves: reserves come by database and tag, page by page, and need no quorum.
func TestOwnReserves(t *testing.T) {
	all := []Reserve{
		{Database: "shop", Tag: "orders", Numbers: 32, Lasts: time.Minute},
		{Database: "shop", Tag: "books"},
		{Database: "default", Tag: "users", Numbers: 7, Lasts: time.Second},
	}
	w := newWorld(t)
	noQuorum(w)
	n := newNode(t, w, func(c *Config) { c.OwnReserves = func() []Reserve { return append([]Reserve(nil), all...) } })
	ctx := context.Background()
	page := func(req ListRequest, want ...Reserve) string {
		t.Helper()
		res, err := n.ListReserves(ctx, req)
		if err != nil || res.NodeTag != "A" {
			t.Fatalf("node %q: %v", res.NodeTag, err)
		}
		same(t, res.Items, want)
		return res.NextPageToken
	}
	page(ListRequest{}, all[2], all[1], all[0])
	next := page(ListRequest{PageSize: 2}, all[2], all[1])
	if last := page(ListRequest{PageSize: 2, PageToken: next}, all[0]); last != "" {
		t.Errorf("the last page leads on by %q", last)
	}
	_, err := n.ListReserves(ctx, ListRequest{PageSize: -1})
	wantError(t, err, InvalidArgument, ReasonInvalidPageSize, "page_size")
	if res, err := newNode(t, w, nil).ListReserves(ctx, ListRequest{}); err != nil || res.Items != nil {
		t.Errorf("a node that keeps none: %+v %v", res, err)
	}
}
