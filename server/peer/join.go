package peer

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// Authorize returns nil if the certificate of ctx's caller names the node with this tag.
type Authorize func(ctx context.Context, tag string) error

// Host answers the calls of nodes that are no members yet. *cluster.PeerSide implements it
// except for Join: the service decides which node may become a member.
type Host interface {
	HandleHello(ctx context.Context, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error)
	HandleJoin(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
}

type joining struct {
	peerv1.UnimplementedJoinServiceServer
	host      Host
	authorize Authorize
}

// RegisterJoining adds the service of joining to the callers' gRPC server. authorize is nil
// without TLS: then what a caller states is not verified.
func RegisterJoining(r grpc.ServiceRegistrar, host Host, authorize Authorize) {
	peerv1.RegisterJoinServiceServer(r, &joining{host: host, authorize: authorize})
}

func (j *joining) Hello(ctx context.Context, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	if err := j.certified(ctx, req.GetSelf().GetTag()); err != nil {
		return nil, err
	}
	response, err := j.host.HandleHello(ctx, req)
	return response, encode(err)
}

func (j *joining) Join(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	if err := j.certified(ctx, req.GetMember().GetTag()); err != nil {
		return nil, err
	}
	response, err := j.host.HandleJoin(ctx, req)
	return response, encode(err)
}

func (j *joining) certified(ctx context.Context, tag string) error {
	if j.authorize == nil {
		return nil
	}
	if tag == "" {
		return status.Error(codes.PermissionDenied, "with TLS a node must say its tag, which its certificate names")
	}
	if err := j.authorize(ctx, tag); err != nil {
		return status.Error(codes.PermissionDenied, "the caller's certificate does not name "+tag+": "+err.Error())
	}
	return nil
}
