package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/access/rights"
)

// Reserve is what this node has in reserve of one tag.
type Reserve struct {
	// Database and Tag are folded.
	Database, Tag string
	Numbers       int64
	// Lasts is for how long the numbers last if the tag is used as before.
	Lasts time.Duration
}

// key orders reserves by database and tag.
func (r Reserve) key() string { return r.Database + "\x00" + r.Tag }

// ReserveTotal is what this node has in reserve of all tags.
type ReserveTotal struct {
	// Tags is how many tags have numbers, or should have.
	Tags    int
	Numbers int64
	// Lasts is that of the tag that runs out first; For if there is no tag. For is how
	// long it should be at least.
	Lasts, For time.Duration
}

// Short reports whether a tag has less than half of what it should have. A node that is cut
// off comes there; with a quorum the cluster refuses to grant more, or the tag is used
// faster than a reserve may be large.
func (t *ReserveTotal) Short() bool { return t != nil && t.Lasts < t.For/2 }

// ReservePage is one page of the reserves of a node.
type ReservePage struct {
	Page[Reserve]
	// NodeTag is that of the node asked.
	NodeTag string
}

// ListReserves lists what the node asked has in reserve, of all databases. Only size and
// token of the request matter.
func (r *ranges) ListReserves(ctx context.Context, req ListRequest) (ReservePage, error) {
	return call(ctx, r.calls, "ListReserves", req, r.listReserves)
}

func (r *ranges) listReserves(ctx context.Context, req ListRequest) (ReservePage, error) {
	// The names of databases are a matter of the whole cluster.
	if err := r.authorize(ctx, rights.Read, "", ""); err != nil {
		return ReservePage{}, err
	}
	c, err := newCursor(listReserves, ListRequest{PageSize: req.PageSize, PageToken: req.PageToken})
	if err != nil {
		return ReservePage{}, err
	}
	page := ReservePage{NodeTag: r.tag.confirmed()}
	if r.ownReserves == nil {
		return page, nil
	}
	all := slices.DeleteFunc(r.ownReserves(), func(own Reserve) bool { return own.key() <= c.after })
	slices.SortFunc(all, func(a, b Reserve) int { return strings.Compare(a.key(), b.key()) })
	page.Page = cut(c, all, 0, func(own Reserve) (string, Reserve) { return own.key(), own })
	return page, nil
}
