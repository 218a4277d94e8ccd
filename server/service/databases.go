package service

import (
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/rights"
)

// databases shows which databases there are, and this node's counters in them.
type databases struct {
	*calls
	*reader
	// own is Config.OwnEtags.
	own func() []OwnEtag
}

// ListDatabases lists the databases that the cluster has ever used, in order of
// their folded names. The request's own database does not matter.
func (d *databases) ListDatabases(ctx context.Context, req ListRequest) (Page[string], error) {
	return call(ctx, d.calls, "ListDatabases", req, d.listDatabases)
}

func (d *databases) listDatabases(ctx context.Context, req ListRequest) (Page[string], error) {
	// Their names are a matter of the whole cluster.
	if err := d.authorize(ctx, rights.Read, "", ""); err != nil {
		return Page[string]{}, err
	}
	req.Database = "" // Every token belongs to the same listing.
	c, index, err := d.page(ctx, listDatabases, req)
	if err != nil {
		return Page[string]{}, err
	}
	// The state limits their number, so that sorting them all is cheap enough.
	names := slices.DeleteFunc(d.state.Databases(), func(name string) bool {
		return name <= c.after || !strings.HasPrefix(name, c.prefix)
	})
	slices.Sort(names)
	return cut(c, names, index, asItself), nil
}
