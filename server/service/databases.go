package service

import (
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// databases shows which databases this node knows, and its counters in them.
type databases struct {
	*calls
	*reader
	// own is Config.OwnEtags.
	own func() []OwnEtag
}

// OwnEtag is how far this node's etag counter of one database has come.
type OwnEtag struct {
	// Database is folded.
	Database string
	// Last is the newest etag that was given; 0 if none was.
	Last uint64
	// Reserved is the end of the block that is reserved on disk.
	Reserved uint64
	// Ceiling is the cluster's ceiling for the counter; 0 if there is none yet.
	Ceiling uint64
}

// DatabasesRequest asks for a page of what there is for each database, in order of their folded names.
type DatabasesRequest struct {
	// Prefix is what their names begin with, in any case.
	Prefix string
	// PageSize is 1 to 1,000; 0 means 100.
	PageSize int
	// PageToken is the NextPageToken of the page before; empty for the first.
	PageToken string
}

// ListDatabases lists the databases that the cluster has ever used.
func (d *databases) ListDatabases(ctx context.Context, req *idnodev1.ListDatabasesRequest) (*idnodev1.ListDatabasesResponse, error) {
	return call(ctx, d.calls, "ListDatabases", req, d.listDatabases)
}

func (d *databases) listDatabases(ctx context.Context, req *idnodev1.ListDatabasesRequest) (*idnodev1.ListDatabasesResponse, error) {
	index, err := d.settleFor(ctx, req.GetConsistency(), "", "")
	if err != nil {
		return nil, err
	}
	// The state limits their number, so that sorting them all is cheap enough.
	of := DatabasesRequest{Prefix: req.GetPrefix(), PageSize: int(req.GetPageSize()), PageToken: req.GetPageToken()}
	page, err := pageOfDatabases(ctx, d, listDatabases, of, d.state.Databases, func(name string) string { return name })
	return &idnodev1.ListDatabasesResponse{Databases: page.Items, NextPageToken: page.NextPageToken, LogIndex: index}, err
}

// ListOwnEtags lists the etag counters of the node asked; no other node knows them.
func (d *databases) ListOwnEtags(ctx context.Context, req DatabasesRequest) (Page[OwnEtag], error) {
	return call(ctx, d.calls, "ListOwnEtags", req, func(ctx context.Context, req DatabasesRequest) (Page[OwnEtag], error) {
		return pageOfDatabases(ctx, d, listOwnEtags, req, d.own, func(e OwnEtag) string { return e.Database })
	})
}

func pageOfDatabases[T any](
	ctx context.Context, d *databases, what listing, req DatabasesRequest, all func() []T, name func(T) string,
) (Page[T], error) {
	// The names of databases are a matter of the whole cluster.
	if err := d.authorize(ctx, rights.Read, "", ""); err != nil {
		return Page[T]{}, err
	}
	if err := checkPrefix(req.Prefix); err != nil {
		return Page[T]{}, err
	}
	c, err := cursor{scope: what, prefix: docid.Fold(req.Prefix)}.at(req.PageSize, req.PageToken)
	if err != nil || all == nil {
		return Page[T]{}, err
	}
	found := slices.DeleteFunc(all(), func(item T) bool { return name(item) <= c.after || !strings.HasPrefix(name(item), c.prefix) })
	slices.SortFunc(found, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return cut(c, found, 0, func(item T) (string, T) { return name(item), item }), nil
}
