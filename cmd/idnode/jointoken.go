package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func newClusterJoinTokenCommand(a *app) *cobra.Command {
	var msg idnodev1.CreateJoinTokenRequest
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "join-token",
		Short: "Make a token with which one node can join, and print it",
		Long: `Makes a token and prints it. One node can join with it, once, and until its time is
over: 'idnode serve --join ... --join-token-file FILE', where - is the standard input.
The cluster keeps the token's hash alone, so it cannot be shown again. Where joining
needs no right, it needs no token either.`,
		Example: "  idnode cluster join-token --tag D > token\n  idnode cluster join-token --watcher --for 10m > token",
	}
	cmd.Flags().StringVar(&msg.Tag, "tag", "", "node tag that the node must have (default: any)")
	cmd.Flags().BoolVar(&msg.Watcher, "watcher", false, "it shall never vote")
	cmd.Flags().DurationVar(&validFor, "for", time.Hour, "how long the token can be used, 30 days (720h) at most")
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		msg.ValidFor = durationpb.New(validFor)
		res, err := invoke(ctx, s.change, idnodev1.NewClusterServiceClient, idnodev1.ClusterServiceClient.CreateJoinToken, &msg)
		return s.out.value(err, res, res.GetToken())
	})
}
