// Package grpcapi is idnode's gRPC API over the use cases of package service. It owns what belongs
// to the protocol: status codes and error details, health and reflection, the limits of the server,
// keepalive, recovery from panics, and the log of requests. It decides nothing about ids.
package grpcapi

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/service"
)

const (
	// maxMessageBytes is what clients accept by default; answers to callers are bounded below it where they
	// are made. Groups that other nodes forward are smaller too; answers to other nodes may be larger.
	maxMessageBytes = 4 << 20
	// minStreams is how many calls may be in flight on one connection at least.
	minStreams = 4096
	// maxExchangeCalls bounds the calls of one Exchange stream that are in flight or whose replies
	// were not sent yet.
	maxExchangeCalls = 2048
	// maxHeaderBytes is far above what any call needs, and far below gRPC's own 16 MiB.
	maxHeaderBytes = 16 << 10
	// handshakeTimeout bounds TLS and HTTP/2 handshakes.
	handshakeTimeout = 5 * time.Second
	// keepaliveTime is how long a connection may be silent before the server asks for a sign of
	// life, and keepaliveTimeout how long it waits for it.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// idleTime is how long a connection may be without a call. Its client hears of the end before its next call, and
	// connects again then: no call fails.
	idleTime = 15 * time.Minute
	// keepaliveMinTime is how often a client may ask: Go clients ask every 10 s at most.
	keepaliveMinTime = 5 * time.Second
)

// The bytes that a caller may send before the server reads them. Windows that grow with the
// sender's pace, as gRPC's do by default, reach 16 MiB for each stream. The window of a
// connection takes no memory: gRPC reopens it before a handler has read.
const (
	streamWindow     = 64 << 10
	connectionWindow = 16 << 20
)

// Config sets the server up.
type Config struct {
	// Logger gets the log of requests.
	Logger *slog.Logger
	// Observer learns of every call.
	Observer Observer
	// ClusterID is the node's cluster; nil lets every call in.
	ClusterID service.ClusterID
	// StartSpan, if set, begins the span of a call of an Exchange that names its caller's span.
	StartSpan StartSpan
	// Options are added to those the server has by itself.
	Options []grpc.ServerOption
}

// Server is the gRPC server of a node. What is made over HTTP goes through it too: see Unary.
type Server struct {
	*grpc.Server
	// public has the handlers of unary, the public unary methods by their full names.
	public *services
	unary  map[string]grpc.MethodDesc
	log    *requestLog
}

// NewServer returns a server with the public services, health and reflection on it. More services
// may be registered before it serves: reflection lists those too. creds is nil for a server without
// TLS. A server that is stopped waits for its handlers; each call is bounded by the service.
func NewServer(cfg Config, creds credentials.TransportCredentials, svc *service.Service, health *Health) *Server {
	log := &requestLog{logger: cfg.Logger, observer: cfg.Observer}
	all := &services{
		Service: svc, log: log, startSpan: cfg.StartSpan,
		exchanges: newExchanges(maxExchangeCalls, exchangesShare(svc.MaxInFlight())),
	}
	server := &Server{
		Server: grpc.NewServer(append(options(creds, log, svc.MaxInFlight(), cfg.ClusterID), cfg.Options...)...),
		public: all, unary: map[string]grpc.MethodDesc{}, log: log,
	}
	public := publicServices{server}
	idnodev1.RegisterIdsServiceServer(public, all)
	idnodev1.RegisterSeriesServiceServer(public, all)
	idnodev1.RegisterSnowflakeServiceServer(public, all)
	idnodev1.RegisterClusterServiceServer(public, all)
	idnodev1.RegisterAdminServiceServer(public, all)
	healthv1.RegisterHealthServer(server, health)
	reflection.Register(inTurns{server, svc.Turn})
	return server
}

// options leaves two things at gRPC's own choice on purpose: a goroutine per
// stream (NumStreamWorkers 0) and 32 KiB buffers.
func options(creds credentials.TransportCredentials, log *requestLog, maxInFlight int, id service.ClusterID) []grpc.ServerOption {
	own := ownCluster{id, log}
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		refuseCompressed(),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(raftlog.MaxMessageBytes),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.MaxConcurrentStreams(uint32(max(minStreams, maxInFlight))),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(log.unary, own.unary),
		grpc.ChainStreamInterceptor(log.stream, own.stream),
	}
	if creds != nil {
		options = append(options, grpc.Creds(creds))
	}
	return options
}

// MemberOptions are the options of the server for other members, which logs and counts their calls
// as NewServer's does, and recovers from panics.
func MemberOptions(cfg Config) []grpc.ServerOption {
	log := &requestLog{logger: cfg.Logger, observer: cfg.Observer}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(log.unary), grpc.ChainStreamInterceptor(log.stream)}
}

// noGzip refuses gzip, which the exporter of traces registers for the whole program, and so for
// this server. gRPC refuses every other compression. A message is decompressed before its sender
// could be checked, and a few bytes may expand to the largest message.
type noGzip struct{}

var errCompressed = errors.New("compressed messages are refused")

// Do implements grpc.Decompressor, without a look at the message.
func (noGzip) Do(io.Reader) ([]byte, error) { return nil, errCompressed }

func (noGzip) Type() string { return "gzip" }

// refuseCompressed is the only option that goes before what is registered, though gRPC
// would have decompressors registered instead.
func refuseCompressed() grpc.ServerOption {
	//lint:ignore SA1019 what came in its place is for the whole program, exporters too
	return grpc.RPCDecompressor(noGzip{})
}
