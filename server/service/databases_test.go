package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/test/fsmtest"
)

// TestDatabases lists used databases by name, page by page; without a quorum from the state of the
// node asked.
func TestDatabases(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	for _, database := range []string{"Shop", "default", "ship"} {
		if _, err := n.NextIdentity(t.Context(), &idnodev1.NextIdentityRequest{Database: database, Name: "a", Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	w.Set(func(f *fsmtest.Faults) {
		f.Unreadable = outcome.NewNotApplied(outcome.NoQuorum, errors.New("no leader"))
	})
	page := func(req *idnodev1.ListDatabasesRequest, want ...string) string {
		t.Helper()
		res, err := n.ListDatabases(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		same(t, res.GetDatabases(), want)
		return res.GetNextPageToken()
	}
	page(&idnodev1.ListDatabasesRequest{Consistency: stale}, "default", "ship", "shop")
	next := page(&idnodev1.ListDatabasesRequest{Prefix: "SH", PageSize: 1, Consistency: stale}, "ship")
	page(&idnodev1.ListDatabasesRequest{Prefix: "SH", PageSize: 1, PageToken: next, Consistency: stale}, "shop")
	_, err := n.ListDatabases(t.Context(), &idnodev1.ListDatabasesRequest{})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
}

// TestDeleteDatabaseIsNamed: a request without a name deletes nothing, and the default database is deleted by its own.
func TestDeleteDatabaseIsNamed(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	if err := callNext(&idnodev1.NextIdentityRequest{Name: "u"})(n); err != nil {
		t.Fatal(err)
	}
	_, err := n.DeleteDatabase(t.Context(), &idnodev1.DeleteDatabaseRequest{})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidDatabase, "database")
	if res, err := n.DeleteDatabase(t.Context(), &idnodev1.DeleteDatabaseRequest{Database: "default"}); err != nil || res.GetNames() != 1 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestOwnEtags: counters come by database, page by page.
func TestOwnEtags(t *testing.T) {
	all := []etags.Progress{
		{Database: "shop", Last: 9, Reserved: 65_536, Ceiling: 1 << 20},
		{Database: "default", Last: 42},
		{Database: "shed"},
		{Database: "ship"},
	}
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.OwnEtags = func() []etags.Progress { return append([]etags.Progress(nil), all...) } })
	ctx := context.Background()
	page := func(req *idnodev1.ListDatabasesRequest, want ...etags.Progress) string {
		t.Helper()
		res, err := n.ListOwnEtags(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		same(t, res.Items, want)
		return res.NextPageToken
	}
	page(&idnodev1.ListDatabasesRequest{}, all[1], all[2], all[3], all[0])
	next := page(&idnodev1.ListDatabasesRequest{Prefix: "SH", PageSize: 2}, all[2], all[3])
	if last := page(&idnodev1.ListDatabasesRequest{Prefix: "sh", PageSize: 2, PageToken: next}, all[0]); last != "" {
		t.Errorf("the last page leads on by %q", last)
	}
	_, err := n.ListOwnEtags(ctx, &idnodev1.ListDatabasesRequest{PageToken: next})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidPageToken, "page_token")
	none := newNode(t, w, nil)
	if res, err := none.ListOwnEtags(ctx, &idnodev1.ListDatabasesRequest{}); err != nil || len(res.Items) != 0 {
		t.Errorf("a node that shows none: %+v %v", res, err)
	}
}

// TestOwnReserves: reserves come by database and tag, page by page, and need no quorum.
func TestOwnReserves(t *testing.T) {
	all := []reserve.Left{
		{Database: "shop", Tag: "orders", Numbers: 32, Lasts: time.Minute},
		{Database: "shop", Tag: "books"},
		{Database: "default", Tag: "users", Numbers: 7, Lasts: time.Second},
	}
	w := newWorld(t)
	w.Set(noQuorum)
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
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidPageSize, "page_size")
	if res, err := newNode(t, w, nil).ListReserves(ctx, &idnodev1.ListReservesRequest{}); err != nil || len(res.GetReserves()) != 0 {
		t.Errorf("a node that keeps none: %+v %v", res, err)
	}
}
