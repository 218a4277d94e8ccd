package service

import (
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/audit"
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

// ListOwnEtagsResponse is one page of counters, by folded database.
type ListOwnEtagsResponse struct {
	Etags         []OwnEtag
	NextPageToken string
}

// ListOwnEtags lists the etag counters of the node asked, whose databases begin
// with the prefix. The request's own database and its consistency do not matter:
// no other node knows these counters.
func (s *Service) ListOwnEtags(ctx context.Context, req ListRequest) (ListOwnEtagsResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListOwnEtagsResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listOwnEtags(ctx, req)
	return res, s.finish(ctx, "ListOwnEtags", err)
}

func (s *Service) listOwnEtags(ctx context.Context, req ListRequest) (ListOwnEtagsResponse, error) {
	// The names of databases are a matter of the whole cluster.
	if err := s.authorize(ctx, rights.Read, "", ""); err != nil {
		return ListOwnEtagsResponse{}, err
	}
	req.Database = "" // Every token belongs to the same listing.
	c, err := newCursor(listOwnEtags, req)
	if err == nil {
		err = s.recordRead(ctx, audit.Record{Event: audit.EventRead, Name: c.prefix})
	}
	if err != nil || s.cfg.OwnEtags == nil {
		return ListOwnEtagsResponse{}, err
	}
	etags := slices.DeleteFunc(s.cfg.OwnEtags(), func(e OwnEtag) bool {
		return e.Database <= c.after || !strings.HasPrefix(e.Database, c.prefix)
	})
	slices.SortFunc(etags, func(a, b OwnEtag) int { return strings.Compare(a.Database, b.Database) })
	page, next := cut(c, etags, func(e OwnEtag) string { return e.Database })
	return ListOwnEtagsResponse{Etags: page, NextPageToken: next}, nil
}
