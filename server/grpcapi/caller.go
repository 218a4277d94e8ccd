package grpcapi

import (
	"context"
	"crypto/tls"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/idnode/idnode/server/service"
)

// CallerOf returns the caller of a handler's context. principal names the
// other side of a connection with TLS. It is asked only where that matters, so
// that other calls pay nothing.
func CallerOf(ctx context.Context, principal func(tls.ConnectionState) string) service.Caller {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return service.Caller{}
	}
	caller := service.Caller{Address: p.Addr.String()}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		caller.Principal = principal(info.State)
	}
	return caller
}
