package service

import (
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/rights"
)

// OwnEtag is how far this node's etag counter of one database has come.
type OwnEtag struct {
	// Database is folded.
	Database string
	// Last is the newest etag that was given; 0 if none was.
	Last uint64
	// Reserved is the end of the block that is reserved on disk.
	Reserved uint64
	// Ceiling is the one that the cluster keeps for the counter; 0 if it keeps none
	// yet.
	Ceiling uint64
}

// ListOwnEtags lists the etag counters of the node asked, whose databases begin
// with the prefix. The request's own database and its consistency do not matter:
// no other node knows these counters.
func (d *databases) ListOwnEtags(ctx context.Context, req ListRequest) (Page[OwnEtag], error) {
	return call(ctx, d.calls, "ListOwnEtags", req, d.listOwnEtags)
}

func (d *databases) listOwnEtags(ctx context.Context, req ListRequest) (Page[OwnEtag], error) {
	// The names of databases are a matter of the whole cluster.
	if err := d.authorize(ctx, rights.Read, "", ""); err != nil {
		return Page[OwnEtag]{}, err
	}
	req.Database = "" // Every token belongs to the same listing.
	c, err := newCursor(listOwnEtags, req)
	if err != nil || d.own == nil {
		return Page[OwnEtag]{}, err
	}
	etags := slices.DeleteFunc(d.own(), func(e OwnEtag) bool {
		return e.Database <= c.after || !strings.HasPrefix(e.Database, c.prefix)
	})
	slices.SortFunc(etags, func(a, b OwnEtag) int { return strings.Compare(a.Database, b.Database) })
	return cut(c, etags, 0, func(e OwnEtag) (string, OwnEtag) { return e.Database, e }), nil
}
