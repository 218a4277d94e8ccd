package service

import (
	"context"
	"testing"
)

// TestOwnEtags: counters come by database, page by page, and need no quorum.
func TestOwnEtags(t *testing.T) {
	all := []OwnEtag{
		{Database: "shop", Last: 9, Reserved: 65_536, Ceiling: 1 << 20},
		{Database: "default", Last: 42},
		{Database: "shed"},
		{Database: "ship"},
	}
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.OwnEtags = func() []OwnEtag { return append([]OwnEtag(nil), all...) } })
	ctx := context.Background()
	page := func(req ListRequest, want ...OwnEtag) string {
		t.Helper()
		res, err := n.ListOwnEtags(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		same(t, res.Items, want)
		return res.NextPageToken
	}
	page(ListRequest{}, all[1], all[2], all[3], all[0])
	next := page(ListRequest{Prefix: "SH", PageSize: 2}, all[2], all[3])
	if last := page(ListRequest{Prefix: "sh", PageSize: 2, PageToken: next}, all[0]); last != "" {
		t.Errorf("the last page leads on by %q", last)
	}
	_, err := n.ListOwnEtags(ctx, ListRequest{PageToken: next})
	wantError(t, err, InvalidArgument, ReasonInvalidPageToken, "page_token")
	none := newNode(t, w, nil)
	if res, err := none.ListOwnEtags(ctx, ListRequest{}); err != nil || res.Items != nil {
		t.Errorf("a node that shows none: %+v %v", res, err)
	}
}
