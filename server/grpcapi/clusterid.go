package grpcapi

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

var clusterIDKey = strings.ToLower(service.ClusterIDHeader)

// ownCluster refuses calls and streams whose metadata names another cluster, and those of an ended certificate.
type ownCluster struct {
	id  service.ClusterID
	log *requestLog
}

func (c ownCluster) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (c ownCluster) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := c.check(stream.Context()); err != nil {
		return err
	}
	return handler(srv, stream)
}

func (c ownCluster) check(ctx context.Context) error {
	err := certificateEnded(ctx)
	if err == nil {
		err = c.id.Check(metadata.ValueFromIncomingContext(ctx, clusterIDKey))
	}
	if err != nil {
		return c.log.refuse(apierror.Of(err))
	}
	return nil
}
