package grpcapi

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/server/budget"
)

// publicServices registers services whose calls may come over HTTP too.
type publicServices struct{ server *Server }

func (p publicServices) RegisterService(desc *grpc.ServiceDesc, server any) {
	overGRPC := *desc
	overGRPC.Methods = slices.Clone(desc.Methods)
	for i, method := range desc.Methods {
		name := "/" + desc.ServiceName + "/" + method.MethodName
		p.server.unary[name] = method
		if request := requestOf(desc, method.MethodName); repeats(request) {
			overGRPC.Methods[i].Handler = p.server.log.inParts(name, request, method.Handler)
		}
	}
	p.server.RegisterService(&overGRPC, server)
}

// Unary makes a call of a public method, by its full name, as gRPC's server makes it: a panic
// ends that call alone, it counts in the metrics, and the memory it holds is counted for to,
// which may be nil, until its answer is encoded. decode decodes the request into a message, and
// encode returns the answer's bytes. The caller of Unary writes the line to the log.
//
// An error is a gRPC status. The method must be known and must not have streams.
func (s *Server) Unary(ctx context.Context, method string, to *budget.Connection, decode func(any) error,
	encode func(proto.Message) ([]byte, error),
) ([]byte, error) {
	decodable := func(request any) error {
		if err := decode(request); err != nil {
			return s.Refuse(err)
		}
		return nil
	}
	answer, err := s.unary[method].Handler(s.public, ctx, decodable,
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
			start := s.log.begin(method)
			defer func() { s.log.observer.Handled(method, status.Code(err), time.Since(start)) }()
			defer s.log.recovered(ctx, &err)
			return s.log.counted(ctx, to, req, method, handler, func(m proto.Message) (any, error) { return encode(m) })
		})
	if err != nil {
		return nil, err
	}
	return answer.([]byte), nil
}

// Refuse records a call that is refused before it is made, and returns its error as Status does.
func (s *Server) Refuse(err error) error {
	refusal := s.Status(err)
	s.log.refused(reasonOf(refusal), 1)
	return refusal
}

// Status returns an error as the gRPC status that a caller gets.
func (s *Server) Status(err error) error { return statusError(err) }
