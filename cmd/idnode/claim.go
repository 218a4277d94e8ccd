package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func (a *app) claimCommand() *cobra.Command {
	var (
		req       requestFlags
		separator string
	)
	cmd := &cobra.Command{
		Use:     "claim ID",
		GroupID: groupIDs,
		Short:   "Record a finished id as taken: the first claim wins",
		Long: `Claims an id of your own in the cluster. The next one to claim it, in any case of
letters, is refused, and identities step over it.`,
		Example: "  idnode claim users/ayende@example.org",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&separator, "separator", "", `separator of the id's parts (default "/")`)
	req.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		var res *idnodev1.ClaimResponse
		err := s.onceFrom(ctx, &req, func(ctx context.Context, conn grpc.ClientConnInterface, id *idnodev1.RequestId) (err error) {
			res, err = idnodev1.NewIdsServiceClient(conn).Claim(ctx, &idnodev1.ClaimRequest{
				Database: s.database, Id: args[0], Separator: separator, RequestId: id,
			})
			return err
		})
		if err != nil {
			return err
		}
		s.out.value(res, docid.Escape(res.GetId()))
		return nil
	})
}

func (a *app) releaseCommand() *cobra.Command {
	var req requestFlags
	cmd := &cobra.Command{
		Use:     "release ID",
		GroupID: groupIDs,
		Short:   "Give a claimed id free again",
		Example: "  idnode release users/ayende@example.org",
		Args:    cobra.ExactArgs(1),
	}
	req.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		var res *idnodev1.ReleaseResponse
		err := s.onceFrom(ctx, &req, func(ctx context.Context, conn grpc.ClientConnInterface, id *idnodev1.RequestId) (err error) {
			res, err = idnodev1.NewIdsServiceClient(conn).Release(ctx, &idnodev1.ReleaseRequest{
				Database: s.database, Id: args[0], RequestId: id,
			})
			return err
		})
		if err != nil {
			return err
		}
		s.out.value(res, docid.Escape(args[0]))
		return nil
	})
}

func (a *app) claimsCommand() *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "claims",
		GroupID: groupIDs,
		Short:   "List the claimed ids",
		Example: "  idnode claims --prefix users/",
	}, func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		var res *idnodev1.ListClaimsResponse
		err := s.ask(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			res, err = idnodev1.NewIdsServiceClient(conn).ListClaims(ctx, &idnodev1.ListClaimsRequest{
				Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: p.consistency,
			})
			return err
		})
		for _, id := range res.GetIds() {
			s.out.claimed(id)
		}
		return res.GetNextPageToken(), len(res.GetIds()), err
	})
}

// claimed prints one claimed id. The API lists ids alone, so there is no message
// for one.
func (p *printer) claimed(id string) {
	if !p.json {
		p.line(id)
		return
	}
	line, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		p.fail(err)
		return
	}
	p.line(string(line))
}
