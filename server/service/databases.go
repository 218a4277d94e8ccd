package service

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/reserve"
)

// databases lists the databases of this node's state, and its own counters in them.
type databases struct {
	*base
	own func() []etags.Progress
}

// ListDatabases lists the databases that have names.
func (d *databases) ListDatabases(ctx context.Context, req *idnodev1.ListDatabasesRequest) (*idnodev1.ListDatabasesResponse, error) {
	return admission.Call(ctx, d.Control, "ListDatabases", req, d.listDatabases)
}

func (d *databases) listDatabases(ctx context.Context, req *idnodev1.ListDatabasesRequest) (*idnodev1.ListDatabasesResponse, error) {
	index, err := d.settleFor(ctx, req.GetConsistency(), "", "")
	if err != nil {
		return nil, err
	}
	// The state limits their number, so that sorting them all is cheap enough.
	page, err := pageOfAll(ctx, d.base, listDatabases, req.GetPrefix(), req, d.state.Databases, func(name string) string { return name })
	return &idnodev1.ListDatabasesResponse{Databases: page.Items, NextPageToken: page.NextPageToken, LogIndex: index}, err
}

// DeleteDatabase forgets names of a database, as many as one entry may.
func (d *databases) DeleteDatabase(ctx context.Context, req *idnodev1.DeleteDatabaseRequest) (*idnodev1.DeleteDatabaseResponse, error) {
	return admission.Call(ctx, d.Control, "DeleteDatabase", req, d.deleteDatabase)
}

func (d *databases) deleteDatabase(ctx context.Context, req *idnodev1.DeleteDatabaseRequest) (*idnodev1.DeleteDatabaseResponse, error) {
	if req.GetDatabase() == "" {
		return nil, apierror.Invalid(apierror.ReasonInvalidDatabase, "database", "the database to delete is missing; %q names the default one",
			docid.DefaultDatabase)
	}
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if err := d.Authorize(ctx, rights.Cluster, database, ""); err != nil {
		return nil, err
	}
	record := audit.Record{Event: audit.EventDatabaseDelete, Database: database}
	forgotten := func(r *raftlogv1.Result) (before, after any) { return r.GetDatabaseDeleted().GetNames(), nil }
	result, err := d.proposeAudited(ctx, record, op.Envelope{Database: database}, &raftlogv1.DatabaseDelete{}, true, forgotten)
	deleted := result.GetDatabaseDeleted()
	return &idnodev1.DeleteDatabaseResponse{Names: deleted.GetNames(), More: deleted.GetMore(), LogIndex: result.GetLogIndex()}, err
}

// ListOwnEtags lists the etag counters of the node asked; other nodes do not have them.
func (d *databases) ListOwnEtags(ctx context.Context, req *idnodev1.ListDatabasesRequest) (Page[etags.Progress], error) {
	return admission.Call(ctx, d.Control, "ListOwnEtags", req, d.listOwnEtags)
}

func (d *databases) listOwnEtags(ctx context.Context, req *idnodev1.ListDatabasesRequest) (Page[etags.Progress], error) {
	return pageOfAll(ctx, d.base, listOwnEtags, req.GetPrefix(), req, d.own, func(e etags.Progress) string { return e.Database })
}

// ListReserves lists the reserves of the node asked, of all databases.
func (r *ranges) ListReserves(ctx context.Context, req *idnodev1.ListReservesRequest) (*idnodev1.ListReservesResponse, error) {
	return admission.Call(ctx, r.Control, "ListReserves", req, r.listReserves)
}

func (r *ranges) listReserves(ctx context.Context, req *idnodev1.ListReservesRequest) (*idnodev1.ListReservesResponse, error) {
	page, err := pageOfAll(ctx, r.base, listReserves, "", req, r.ownReserves, func(l reserve.Left) string {
		return l.Database + "\x00" + l.Tag
	})
	res := &idnodev1.ListReservesResponse{NodeTag: r.tag.confirmed(), NextPageToken: page.NextPageToken}
	for _, own := range page.Items {
		res.Reserves = append(res.Reserves, &idnodev1.Reserve{
			Database: own.Database, Tag: own.Tag, Numbers: own.Numbers, Lasts: durationpb.New(own.Lasts),
		})
	}
	return res, err
}

// pageOfAll returns a page of all's results, of every database, in order of their folded names.
func pageOfAll[T any](
	ctx context.Context, b *base, what listing, prefix string, req paged, all func() []T, name func(T) string,
) (Page[T], error) {
	// The names of databases are a matter of the whole cluster.
	if err := b.Authorize(ctx, rights.Read, "", ""); err != nil {
		return Page[T]{}, err
	}
	if err := checkPrefix(prefix); err != nil {
		return Page[T]{}, err
	}
	c, err := cursor{scope: what, prefix: docid.Fold(prefix)}.at(int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return Page[T]{}, err
	}
	found := slices.DeleteFunc(all(), func(item T) bool { return name(item) <= c.after || !strings.HasPrefix(name(item), c.prefix) })
	slices.SortFunc(found, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return cut(c, found, 0, func(item T) (string, T) { return name(item), item }), nil
}
