package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
)

func newHealthCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether a node serves: exit code 0 yes, 3 no, 1 anything else",
		Long: `Asks a node for its health. By default a healthy node is ready: it serves with a quorum. The
service idnode.live is healthy as long as the process lives and Raft does not hang. A node whose storage is full
serves all the same; the standard error says so. Inside a container the command finds
the node's own TLS files by the same environment variables.`,
		Example: `  idnode health
  idnode health --service idnode.live`,
	}
	service := cmd.Flags().String("service", "", "service to ask about; empty is the node as a whole")
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		return health(ctx, s, *service)
	})
}

func health(ctx context.Context, s *clusterClient, service string) error {
	var res *healthpb.HealthCheckResponse
	full := false
	err := s.ask(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		res, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err == nil {
			// What is not known does not make it less healthy.
			status, _ := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
			full = status.GetStorageFull()
		}
		return err
	})
	if err := s.out.value(err, res, res.GetStatus()); err != nil {
		return err
	}
	if full {
		fmt.Fprintln(s.stderr, "idnode: storage is full, here or on a majority: "+fullMeans)
	}
	if res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return &unavailableError{errors.New("the node does not serve: " + res.GetStatus().String())}
	}
	return nil
}
