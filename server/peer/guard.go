package peer

import (
	"bytes"
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// Authorize returns nil if the certificate of ctx's caller names the member with this tag.
type Authorize func(ctx context.Context, tag string) error

// Unary is an interceptor for the gRPC server: it decides which callers may use the service, and
// passes the calls of all other services.
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// Stream is Unary for streams.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := s.check(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handler(srv, stream)
}

// check returns nil if the caller may make the call. Its errors mean that the call has had
// no effect.
func (s *Server) check(ctx context.Context, method string) error {
	if !strings.HasPrefix(method, "/"+peerv1.PeerService_ServiceDesc.ServiceName+"/") {
		return nil
	}
	caller := introductionOf(ctx)
	switch method {
	case peerv1.PeerService_Hello_FullMethodName, peerv1.PeerService_Join_FullMethodName:
		// The caller, or this node, has no cluster yet.
		return s.certified(ctx, caller.Tag)
	}
	return s.checkMember(ctx, caller, method == peerv1.PeerService_Ping_FullMethodName)
}

// checkMember accepts present members. A removed member may ping: the answer tells it.
func (s *Server) checkMember(ctx context.Context, caller Introduction, ping bool) error {
	own := s.node.ClusterID()
	if len(own) == 0 {
		return fail(codes.Unavailable, "this node has no cluster yet", notApplied(outcome.Starting))
	}
	if !bytes.Equal(own, caller.ClusterID) {
		return denied("the caller belongs to another cluster")
	}
	if err := s.checkPresent(ctx, caller, ping); err != nil || ping || !callsAs(ctx, caller.ID) {
		return err
	}
	return s.checkPresent(ctx, caller, ping)
}

func (s *Server) checkPresent(ctx context.Context, caller Introduction, ping bool) error {
	m, ok := s.node.Member(caller.ID)
	switch {
	case !ok:
		return denied("the caller is no member that this node knows")
	case m.GetRemoved() && !ping:
		failure := notApplied(outcome.NotLeader)
		failure.Removed = true
		return fail(codes.PermissionDenied, "the caller was removed from the cluster", failure)
	}
	return s.certified(ctx, m.GetTag())
}

func (s *Server) certified(ctx context.Context, tag string) error {
	if s.authorize == nil {
		return nil
	}
	if tag == "" {
		return denied("with TLS a node must say its tag, which its certificate names")
	}
	if err := s.authorize(ctx, tag); err != nil {
		return denied("the caller's certificate does not name " + tag + ": " + err.Error())
	}
	return nil
}

func denied(why string) error {
	return fail(codes.PermissionDenied, why, notApplied(outcome.NotLeader))
}

func notApplied(reason outcome.Reason) *peerv1.Failure {
	return &peerv1.Failure{Outcome: uint32(outcome.NotApplied), Reason: uint32(reason)}
}

// Metadata keys of an introduction. Values of keys that end in -bin are raw.
const (
	keyNodeID    = "idnode-node-id-bin"
	keyClusterID = "idnode-cluster-id-bin"
	keyTag       = "idnode-node-tag"
)

// Introduction is a node's identity as the node states it.
type Introduction struct {
	// ClusterID is the node's cluster; empty if it has none yet.
	ClusterID []byte
	// ID is the node's raw Raft id.
	ID []byte
	// Tag is the node's tag; empty if it has none yet.
	Tag string
}

func (i Introduction) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, keyNodeID, string(i.ID), keyClusterID, string(i.ClusterID), keyTag, i.Tag)
}

func introductionOf(ctx context.Context) Introduction {
	md, _ := metadata.FromIncomingContext(ctx)
	return Introduction{ClusterID: []byte(first(md, keyClusterID)), ID: []byte(first(md, keyNodeID)), Tag: first(md, keyTag)}
}

func first(md metadata.MD, key string) string {
	if values := md.Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}
