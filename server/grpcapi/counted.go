package grpcapi

import (
	"context"
	"crypto/tls"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/service"
)

const (
	// callBytes is what a call holds beside its request and a large answer.
	callBytes = 1 << 10
	// streamBytes is what a stream holds besides: goroutines with their stacks, and buffers.
	streamBytes = 16 << 10
)

// connectionOf returns what is counted for the connection that a call came on; nil if nothing is.
func connectionOf(ctx context.Context) *budget.Connection {
	if p, ok := peer.FromContext(ctx); ok {
		if at, ok := p.Addr.(interface{ Budget() *budget.Connection }); ok {
			return at.Budget()
		}
	}
	return nil
}

// certificateEnded returns the refusal of a call on a connection whose certificate is no longer accepted; nil for others.
func certificateEnded(ctx context.Context) error {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, secured := p.AuthInfo.(credentials.TLSInfo)
	if at, known := p.Addr.(interface{ Ended() bool }); known && secured && at.Ended() {
		return apierror.CertificateEnded(info.State.PeerCertificates[0])
	}
	return nil
}

// CallerOf returns the caller of a handler's context. principal names the other side of a
// connection with TLS. Calls to which that does not matter do not ask, and pay nothing.
func CallerOf(ctx context.Context, principal func(tls.ConnectionState) string) admission.Caller {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return admission.Caller{}
	}
	caller := admission.Caller{Address: p.Addr.String()}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		caller.Principal = principal(info.State)
	}
	return caller
}

func isOperators(method string) bool {
	return strings.HasPrefix(method, "/"+idnodev1.ClusterService_ServiceDesc.ServiceName+"/") ||
		strings.HasPrefix(method, "/"+idnodev1.AdminService_ServiceDesc.ServiceName+"/")
}

func holdFor(method string, to *budget.Connection, bytes int64) bool {
	if isOperators(method) {
		return to.HoldLast(bytes)
	}
	return to.Hold(bytes)
}

// beginCall counts a call in flight of its caller, or refuses it; end ends the count. Health checks
// are not counted: a supervisor would end a node that is merely busy.
func (l *requestLog) beginCall(to *budget.Connection, method string) (end func(), err error) {
	switch {
	case strings.HasPrefix(method, healthPrefix):
		return func() {}, nil
	case !to.Begin():
		return nil, l.refuse(apierror.ErrOverloaded)
	default:
		return to.End, nil
	}
}

const healthPrefix = "/grpc.health.v1.Health/"

// countedUnary counts what a call holds for its caller. The answer is encoded here, so
// that it is counted until gRPC has sent it.
func (l *requestLog) countedUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if strings.HasPrefix(info.FullMethod, peerPrefix) {
		return handler(ctx, req)
	}
	if err := l.checkFields(req.(proto.Message)); err != nil {
		return nil, err
	}
	to := connectionOf(ctx)
	end, err := l.beginCall(to, info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer end()
	return l.counted(ctx, to, req, info.FullMethod, handler, func(answer proto.Message) (any, error) {
		e, err := encode(answer, to)
		return &e, err
	})
}

// counted counts what a call holds until its answer is encoded, and refuses it if that is too much.
// The error of a use case becomes a status. A health check is never refused, and calls of operators
// only if their own caller is full.
func (l *requestLog) counted(ctx context.Context, to *budget.Connection, req any, method string, handler grpc.UnaryHandler,
	encode func(proto.Message) (any, error),
) (any, error) {
	if method != healthv1.Health_Check_FullMethodName {
		bytes := callBytes + int64(proto.Size(req.(proto.Message))) + answerBytes(req)
		if !holdFor(method, to, bytes) {
			return nil, l.refuse(apierror.ErrOverloaded)
		}
		defer to.Give(bytes)
	}
	res, err := handler(ctx, req)
	if err != nil {
		return nil, statusError(err)
	}
	answer, err := encode(res.(proto.Message))
	if err != nil {
		return nil, statusError(err)
	}
	return answer, nil
}

func (l *requestLog) countedStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	to := connectionOf(stream.Context())
	if strings.HasPrefix(info.FullMethod, peerPrefix) {
		return handler(srv, stream)
	}
	end, err := l.beginCall(to, info.FullMethod)
	if err != nil {
		return err
	}
	defer end()
	if !to.Hold(streamBytes) {
		return l.refuse(apierror.ErrOverloaded)
	}
	defer to.Give(streamBytes)
	return handler(srv, countedStream{stream, l, to})
}

// countedStream counts what is sent on a stream and is not encoded, and so counted, already.
type countedStream struct {
	grpc.ServerStream
	log *requestLog
	to  *budget.Connection
}

func (s countedStream) SendMsg(m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return s.ServerStream.SendMsg(m)
	}
	if err := certificateEnded(s.Context()); err != nil {
		return s.log.refuse(apierror.Of(err))
	}
	if s.to.Full() {
		return s.log.refuse(apierror.ErrOverloaded)
	}
	e, err := encode(message, s.to)
	if err != nil {
		return statusError(err)
	}
	return s.ServerStream.SendMsg(&e)
}

// RecvMsg refuses what checkFields does.
func (s countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if request, ok := m.(proto.Message); ok && err == nil {
		err = s.log.checkFields(request)
	}
	return err
}

// checkFields refuses a request with a field that this program does not know: a newer client may narrow the
// call by it. Health and reflection are not idnode's own.
func (l *requestLog) checkFields(request proto.Message) error {
	err := exactproto.Check(request)
	if err == nil || request.ProtoReflect().Descriptor().ParentFile().Package() != ownPackage {
		return nil
	}
	return l.refuse(unknownField(err))
}

const ownPackage = "idnode.v1"

func unknownField(err error) *apierror.Error {
	return badRequest(apierror.ReasonInvalidRequest, "", "the request has "+err.Error())
}

func answerBytes(req any) int64 {
	const number = 512 // of a series, with all that is known of it
	switch req := req.(type) {
	case *idnodev1.GenerateRequest:
		return textBytes(req)
	case *idnodev1.TakeNumbersRequest:
		return int64(len(req.GetKeys())) * number
	case interface{ GetKeys() []*idnodev1.NumberOf }:
		return int64(len(req.GetKeys())) * number
	case *idnodev1.ReconcileNumbersRequest:
		return int64(len(req.GetNumbers())) * number
	case interface {
		GetSeries() string
		GetPageSize() int32
	}:
		return pageBytes(req.GetPageSize(), number)
	case interface {
		GetPrefix() string
		GetPageSize() int32
	}:
		const item = 2 << 10 // a name or an id, and a number
		return pageBytes(req.GetPageSize(), item)
	default:
		return 0
	}
}

func pageBytes(size int32, item int64) int64 {
	if size <= 0 {
		size = service.DefaultPageSize
	}
	return int64(min(size, service.MaxPageSize)) * item
}

// textBytes bounds the text of the requested ids. More than one answer may hold is not counted: the
// service refuses it.
func textBytes(req *idnodev1.GenerateRequest) int64 {
	if req.GetBlocksOnly() || req.GetCount() <= 1 || req.GetCount() > service.MaxIDs {
		return 0
	}
	const rest = 40 // a GUID, or the number and tag of an id
	return min(req.GetCount()*int64(len(req.GetTemplate())+rest), service.MaxIDsBytes)
}
