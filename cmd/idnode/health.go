package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func (a *app) healthCommand() *cobra.Command {
	var service string
	cmd := &cobra.Command{
		Use:     "health",
		GroupID: groupCluster,
		Short:   "Say whether a node serves: exit code 0 yes, 3 no, 1 anything else",
		Long: `Asks a node how it is. By default that means in touch with a quorum; the service
idnode.live is fine as long as the process lives. Inside a container it finds the
node's own TLS files by the same environment variables.`,
		Example: `  idnode health
  idnode health --service idnode.live`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&service, "service", "", "service to ask about; empty is the node as a whole")
	return a.client(cmd, func(ctx context.Context, s *session, _ []string) error {
		return health(ctx, s, service)
	})
}

func health(ctx context.Context, s *session, service string) error {
	var res *healthpb.HealthCheckResponse
	err := s.ask(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		res, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		return err
	})
	if err != nil {
		return err
	}
	s.out.value(res, res.GetStatus())
	if res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return &unavailableError{err: errors.New("the node does not serve: " + res.GetStatus().String())}
	}
	return nil
}
