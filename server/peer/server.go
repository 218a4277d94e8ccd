package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// maxStreamGroups bounds the groups in flight on one stream. A node sends a few; others wait
// in the stream.
const maxStreamGroups = 64

// Node answers the calls. *cluster.PeerSide implements it except for Join: the service
// decides which node may become a member.
type Node interface {
	// ClusterID returns the id of this node's cluster; empty before it has one.
	ClusterID() []byte
	// Member returns the member with this raw Raft id, even a removed one.
	Member(id []byte) (*raftlogv1.Member, bool)
	HandleHello(ctx context.Context, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error)
	HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error)
	HandleReadIndex(ctx context.Context) (uint64, error)
	HandlePing(ctx context.Context, caller []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error)
	HandleJoin(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error)
	HandleTransfer(ctx context.Context, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error)
	HandleMayRemove(ctx context.Context, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error)
}

// Server is the PeerService. It must be served behind its interceptors.
type Server struct {
	peerv1.UnimplementedPeerServiceServer
	node      Node
	authorize Authorize
	trace     Trace
	// most is the size of the largest answer, in bytes.
	most int
}

// Trace returns ctx with the trace of a W3C traceparent, so that the work for another node's
// group can be followed.
type Trace func(ctx context.Context, traceparent string) context.Context

var _ peerv1.PeerServiceServer = (*Server)(nil)

// NewServer returns a Server for the node. authorize is nil without TLS: then a caller's
// introduction is not verified. trace may be nil.
func NewServer(node Node, authorize Authorize, trace Trace) *Server {
	return &Server{node: node, authorize: authorize, trace: trace, most: raftlog.MaxMessageBytes}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { peerv1.RegisterPeerServiceServer(r, s) }

// Hello implements the service.
func (s *Server) Hello(ctx context.Context, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	if err := asIntroduced(ctx, req.GetSelf()); err != nil {
		return nil, err
	}
	response, err := s.node.HandleHello(ctx, req)
	return response, encode(err)
}

// Join implements the service. The guard checked the introduction, so the joining node must
// be the introduced node.
func (s *Server) Join(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	if err := asIntroduced(ctx, req.GetMember()); err != nil {
		return nil, err
	}
	response, err := s.node.HandleJoin(ctx, req)
	return response, encode(err)
}

// asIntroduced checks that the node in a call's content is the calling node.
func asIntroduced(ctx context.Context, m *raftlogv1.Member) error {
	caller := introductionOf(ctx)
	if m.GetTag() != caller.Tag || !bytes.Equal(m.GetId(), caller.ID) {
		return denied("the caller introduced itself as another node than the one it speaks for")
	}
	return nil
}

func (s *Server) ReadIndex(ctx context.Context, _ *peerv1.ReadIndexRequest) (*peerv1.ReadIndexResponse, error) {
	index, err := s.node.HandleReadIndex(ctx)
	if err != nil {
		return nil, encode(err)
	}
	return &peerv1.ReadIndexResponse{Index: index}, nil
}

func (s *Server) Ping(ctx context.Context, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	response, err := s.node.HandlePing(ctx, introductionOf(ctx).ID, req)
	return response, encode(err)
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
//
// Invariant: a stream that the handler has taken never ends with a Failure in its status. So
// a caller that gets a Failure knows that the guard refused the whole stream, and that none
// of its groups was taken.
func (s *Server) Forward(stream grpc.BidiStreamingServer[peerv1.ForwardRequest, peerv1.ForwardResponse]) error {
	var sending sync.Mutex
	var working sync.WaitGroup
	defer working.Wait()
	caller := introductionOf(stream.Context()).ID
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

// forward handles one group. The guard has checked only the stream's start, so membership is
// checked for each group.
func (s *Server) forward(ctx context.Context, caller []byte, req *peerv1.ForwardRequest) *peerv1.ForwardResponse {
	response := &peerv1.ForwardResponse{Correlation: req.GetCorrelation()}
	if m, ok := s.node.Member(caller); !ok || m.GetRemoved() {
		response.Status = peerv1.ForwardResponse_STATUS_NOT_APPLIED
		response.Reason, response.Detail = uint32(outcome.NotLeader), "the caller is no member any more"
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
