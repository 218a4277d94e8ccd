package service

import (
	"context"
	"slices"
	"strings"

	"github.com/idnode/idnode/access/rights"
)

// ListDatabasesResponse is one page of folded databases.
type ListDatabasesResponse struct {
	Databases     []string
	NextPageToken string
	LogIndex      uint64
}

// ListDatabases lists the databases that the cluster has ever used, in order of
// their folded names. The request's own database does not matter.
func (s *Service) ListDatabases(ctx context.Context, req ListRequest) (ListDatabasesResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListDatabasesResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listDatabases(ctx, req)
	return res, s.finish(ctx, "ListDatabases", err)
}

func (s *Service) listDatabases(ctx context.Context, req ListRequest) (ListDatabasesResponse, error) {
	// Their names are a matter of the whole cluster.
	if err := s.authorize(ctx, rights.Read, "", ""); err != nil {
		return ListDatabasesResponse{}, err
	}
	req.Database = "" // Every token belongs to the same listing.
	c, index, err := s.page(ctx, listDatabases, req)
	if err != nil {
		return ListDatabasesResponse{}, err
	}
	// The state limits their number, so that sorting them all is cheap enough.
	names := slices.DeleteFunc(s.cfg.State.Databases(), func(name string) bool {
		return name <= c.after || !strings.HasPrefix(name, c.prefix)
	})
	slices.Sort(names)
	page, next := cut(c, names, func(name string) string { return name })
	return ListDatabasesResponse{Databases: page, NextPageToken: next, LogIndex: index}, nil
}
