package main

import (
	"context"

	"github.com/spf13/cobra"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func newDatabaseCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "database",
		GroupID: groupIDs,
		Short:   "The databases that there are",
		Long: `A database keeps names apart: each has identities, HiLo counters, claims and series of
its own. It is there once it is used.`,
	}, newDatabaseListCommand(a))
}

func newDatabaseListCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the databases that were ever used",
		Example: "  idnode database list",
	}, a.clusterWide, "DATABASE", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := invoke(ctx, s.ask, idnodev1.NewClusterServiceClient, idnodev1.ClusterServiceClient.ListDatabases,
			&idnodev1.ListDatabasesRequest{
				Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: p.consistency,
			})
		for _, name := range res.GetDatabases() {
			s.out.alone("database", name)
		}
		return res.GetNextPageToken(), len(res.GetDatabases()), err
	})
}
