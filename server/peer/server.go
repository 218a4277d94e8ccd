package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// maxStreamGroups bounds the groups in flight on one stream. A node sends a few; others wait
// in the stream.
const maxStreamGroups = 64

// Node answers the calls of other members. *cluster.PeerSide implements it.
type Node interface {
	// Member returns the member with this raw Raft id, even a removed one.
	Member(id []byte) (*raftlogv1.Member, bool)
	Members() []*raftlogv1.Member
	HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error)
	HandleReadIndex(ctx context.Context) (uint64, error)
	HandlePing(ctx context.Context, caller []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error)
	HandleTransfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error)
	HandleMayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error)
}

// Server is the gRPC server of the members alone.
type Server struct {
	peerv1.UnimplementedMemberServiceServer
	node  Node
	trace Trace
	grpc  *grpc.Server
	// most is the size of the largest answer, in bytes.
	most int
}

// Trace returns ctx with the trace of a W3C traceparent, so that the work for another node's
// group can be followed.
type Trace func(ctx context.Context, traceparent string) context.Context

// window is what one side may send before the other has read it. Left to itself gRPC measures the way with
// a ping beside each burst of data, to find a larger one: at each group, two more messages.
const window = 1 << 20

// NewServer returns a Server for the node. trace may be nil. options are added to the server's own.
func NewServer(node Node, trace Trace, options ...grpc.ServerOption) *Server {
	s := &Server{node: node, trace: trace, most: raftlog.MaxMessageBytes}
	s.grpc = grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(raftlog.MaxMessageBytes), grpc.MaxSendMsgSize(raftlog.MaxMessageBytes),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		grpc.WaitForHandlers(true), grpc.ChainUnaryInterceptor(s.present))...)
	peerv1.RegisterMemberServiceServer(s.grpc, s)
	return s
}

// Serve serves connections whose remote addresses are their callers' Raft ids, until calls
// ends, and returns when their handlers have. It is called once.
func (s *Server) Serve(calls net.Listener) {
	_ = s.grpc.Serve(calls) // It always fails, when calls ends.
	s.grpc.Stop()
}

// ServiceInfo returns the server's services, for metrics.
func (s *Server) ServiceInfo() map[string]grpc.ServiceInfo { return s.grpc.GetServiceInfo() }

// present is an interceptor that refuses all calls but pings to a member that was removed: as
// long as its vote counts the others must know its condition, and its connections stay.
func (s *Server) present(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if info.FullMethod != peerv1.MemberService_Ping_FullMethodName && !s.isPresent(callerOf(ctx)) {
		return nil, encode(outcome.NewNotApplied(outcome.NotLeader, errNoMember))
	}
	return handler(ctx, req)
}

var errNoMember = errors.New("the caller is no member any more")

func (s *Server) isPresent(caller []byte) bool {
	m, ok := s.node.Member(caller)
	return ok && !m.GetRemoved()
}

// callerOf returns the raw Raft id of the member that makes the call of ctx.
func callerOf(ctx context.Context) []byte {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	id, err := nodeid.Parse(p.Addr.String())
	if err != nil {
		return nil
	}
	return id.Bytes()
}

func (s *Server) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	index, err := s.node.HandleReadIndex(ctx)
	if err != nil {
		return nil, encode(err)
	}
	return &peerv1.ReadIndexResponse{Index: index}, nil
}

func (s *Server) Ping(ctx context.Context, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	response, err := s.node.HandlePing(ctx, callerOf(ctx), req)
	return response, encode(err)
}

// Members implements the service.
func (s *Server) Members(context.Context, *peerv1.MembersRequest) (*peerv1.MembersResponse, error) {
	return &peerv1.MembersResponse{Members: s.node.Members()}, nil
}

func (s *Server) Transfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	response, err := s.node.HandleTransfer(ctx, req)
	return response, encode(err)
}

func (s *Server) MayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	response, err := s.node.HandleMayRemove(ctx, req)
	return response, encode(err)
}

// Forward implements the service: many groups are in flight at a time, and each is answered
// when it is done.
func (s *Server) Forward(stream grpc.BidiStreamingServer[peerv1.ForwardRequest, peerv1.ForwardResponse]) error {
	var sending sync.Mutex
	var working sync.WaitGroup
	defer working.Wait()
	caller := callerOf(stream.Context())
	slots := make(chan struct{}, maxStreamGroups)
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			response := s.forward(stream.Context(), caller, req)
			sending.Lock()
			defer sending.Unlock()
			_ = stream.Send(response) // A broken stream ends in Recv.
		})
	}
}

// forward handles one group of a caller that must still be a member.
func (s *Server) forward(ctx context.Context, caller []byte, req *peerv1.ForwardRequest) *peerv1.ForwardResponse {
	response := &peerv1.ForwardResponse{Correlation: req.GetCorrelation()}
	if !s.isPresent(caller) {
		response.Status = peerv1.ForwardResponse_STATUS_NOT_APPLIED
		response.Reason, response.Detail = uint32(outcome.NotLeader), errNoMember.Error()
		return response
	}
	if s.trace != nil && req.GetTraceparent() != "" {
		ctx = s.trace(ctx, req.GetTraceparent())
	}
	result, err := s.node.HandleForward(ctx, req.GetGroup())
	if err == nil {
		response.Status = peerv1.ForwardResponse_STATUS_DONE
		response.Result = raftlog.GroupResultToProto(result)
		if proto.Size(response) <= s.most {
			return response
		}
		// It would end the stream, and every group on it. Groups are cut so that no answer is too
		// large.
		response.Result, err = nil, outcome.NewUnknown(outcome.TooLarge, errors.New("the results are too large to be sent"))
	}
	response.Status = peerv1.ForwardResponse_STATUS_UNKNOWN
	if outcome.Of(err) == outcome.NotApplied {
		response.Status = peerv1.ForwardResponse_STATUS_NOT_APPLIED
	}
	response.Reason, response.Detail = uint32(outcome.ReasonOf(err)), err.Error()
	return response
}
