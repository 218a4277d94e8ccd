package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func newClaimCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claim ID",
		Short: "Record a finished id as taken: the first claim wins",
		Long: `Claims an id of your own in the cluster. The next one to claim it, in any case of
letters, is refused, and identities step over it.`,
		Example: "  idnode claim users/ayende@example.org",
	}
	separator := cmd.Flags().String("separator", "", `separator of the id's parts (default "/")`)
	req := newRequestFlags(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.ClaimRequest{Database: s.database, Id: args[0], Separator: *separator}
		res, err := invoke(ctx, s.onceFrom(req, &msg.RequestId), idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Claim, msg)
		return s.out.value(err, res, docid.Escape(res.GetId()))
	})
}

func newReleaseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Give a claimed id free again",
		Example: "  idnode release users/ayende@example.org",
	}
	req := newRequestFlags(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.ReleaseRequest{Database: s.database, Id: args[0]}
		res, err := invoke(ctx, s.onceFrom(req, &msg.RequestId), idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.Release, msg)
		return s.out.value(err, res, docid.Escape(args[0]))
	})
}

func newClaimsCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "claims",
		Short:   "List the claimed ids",
		Example: "  idnode claims --prefix users/",
	}, a.client, "ID", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := invoke(ctx, s.ask, idnodev1.NewIdsServiceClient, idnodev1.IdsServiceClient.ListClaims, &idnodev1.ListClaimsRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: p.consistency,
		})
		for _, id := range res.GetIds() {
			s.out.alone("id", id)
		}
		return res.GetNextPageToken(), len(res.GetIds()), err
	})
}
