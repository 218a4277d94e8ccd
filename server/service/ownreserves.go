package service

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/access/rights"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/server/reserve"
)

// ListReserves lists what the node asked has in reserve, of all databases.
func (r *ranges) ListReserves(ctx context.Context, req *idnodev1.ListReservesRequest) (*idnodev1.ListReservesResponse, error) {
	return call(ctx, r.calls, "ListReserves", req, r.listReserves)
}

func (r *ranges) listReserves(ctx context.Context, req *idnodev1.ListReservesRequest) (*idnodev1.ListReservesResponse, error) {
	// The names of databases are a matter of the whole cluster.
	if err := r.authorize(ctx, rights.Read, "", ""); err != nil {
		return nil, err
	}
	c, err := cursor{scope: listReserves}.at(int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	var all []reserve.Left
	key := func(l reserve.Left) string { return l.Database + "\x00" + l.Tag }
	if r.ownReserves != nil {
		all = slices.DeleteFunc(r.ownReserves(), func(own reserve.Left) bool { return key(own) <= c.after })
	}
	slices.SortFunc(all, func(a, b reserve.Left) int { return strings.Compare(key(a), key(b)) })
	page := cut(c, all, 0, func(own reserve.Left) (string, *idnodev1.Reserve) {
		return key(own), &idnodev1.Reserve{Database: own.Database, Tag: own.Tag, Numbers: own.Numbers, Lasts: durationpb.New(own.Lasts)}
	})
	return &idnodev1.ListReservesResponse{NodeTag: r.tag.confirmed(), Reserves: page.Items, NextPageToken: page.NextPageToken}, nil
}
