package peer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

const (
	// connectTimeout bounds one attempt to connect, with lookup and handshake. A node that
	// is up answers within a fraction of it.
	connectTimeout = 1500 * time.Millisecond
	// maxBackoff is the longest wait between two attempts to connect: it bounds how long
	// after the end of a partition a peer is reached again.
	maxBackoff = 200 * time.Millisecond
	// maxMissedPings is the number of consecutive unanswered pings after which a connection
	// is closed: its packets may be dropped, which TCP does not notice for minutes.
	maxMissedPings = 3
	// leastPing is how long a ping must have waited to count as unanswered.
	leastPing = 250 * time.Millisecond
)

// PoolConfig is the configuration of a Pool.
type PoolConfig struct {
	// DialMember opens a connection for calls to the member with this raw Raft id: it has
	// proved who both ends are.
	DialMember func(ctx context.Context, id []byte) (net.Conn, error)
	// Credentials returns the credentials for a connection to the gRPC port of the node with
	// this tag, whose certificate must name it; an empty tag means any node. Nil means
	// connections without TLS.
	Credentials func(tag string) credentials.TransportCredentials
	// Dial overrides the addresses of gRPC ports, by tag.
	Dial map[string]string
	// DialContext opens connections to gRPC ports.
	DialContext func(ctx context.Context, address string) (net.Conn, error)
	// Traceparent returns the W3C traceparent of the trace in ctx, which is sent with a
	// group; empty if there is none. Nil means never.
	Traceparent func(ctx context.Context) string
	Logger      *slog.Logger
}

// Pool holds the connections to other nodes. It is safe for concurrent use.
type Pool struct {
	cfg PoolConfig
	mu  sync.Mutex
	// links are by raw Raft id.
	links  map[string]*link
	closed bool
}

// NewPool returns a Pool without connections; they are made on use, and again after they
// broke.
func NewPool(cfg PoolConfig) *Pool {
	return &Pool{cfg: cfg, links: map[string]*link{}}
}

// Close closes all connections; calls in flight fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	links := p.links
	p.links = nil
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

var errClosed = errors.New("the connections to other nodes are closed")

func (p *Pool) link(id []byte) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, outcome.NewNotApplied(outcome.Stopping, errClosed)
	}
	if l, ok := p.links[string(id)]; ok {
		return l, nil
	}
	conn, err := dial("member", insecure.NewCredentials(), func(ctx context.Context, _ string) (net.Conn, error) {
		return p.cfg.DialMember(ctx, id)
	})
	if err != nil {
		return nil, outcome.NewNotApplied(outcome.Unspecified, err)
	}
	l := &link{conn: conn, client: peerv1.NewMemberServiceClient(conn)}
	p.links[string(id)] = l
	return l, nil
}

// onPort makes one call on a node's gRPC port, over a connection of its own: an address at which
// nobody answers is dialled once a call.
func onPort[Req, Resp any](ctx context.Context, p *Pool, tag, address string, req Req,
	method func(peerv1.JoinServiceClient, context.Context, Req, ...grpc.CallOption) (Resp, error),
) (response Resp, err error) {
	if override, ok := p.cfg.Dial[tag]; ok && tag != "" {
		address = override
	}
	creds := insecure.NewCredentials()
	if p.cfg.Credentials != nil {
		creds = p.cfg.Credentials(tag)
	}
	conn, err := dial(address, creds, p.connect)
	if err != nil {
		return response, outcome.NewNotApplied(outcome.Unspecified, err)
	}
	defer func() { _ = conn.Close() }() // The call has ended.
	response, err = method(peerv1.NewJoinServiceClient(conn), ctx, req)
	return response, decode(err)
}

// drop closes a connection; the next call makes a new one.
func (p *Pool) drop(id []byte, l *link) {
	p.mu.Lock()
	if p.links[string(id)] == l {
		delete(p.links, string(id))
	}
	p.mu.Unlock()
	l.close()
}

// dial prepares a connection without sending anything. The address is looked up at each
// attempt to connect, because a node may come back with another IP.
func dial(address string, creds credentials.TransportCredentials,
	connect func(ctx context.Context, address string) (net.Conn, error),
) (*grpc.ClientConn, error) {
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}
	return grpc.NewClient("passthrough:///"+url.PathEscape(address),
		grpc.WithTransportCredentials(creds), grpc.WithContextDialer(connect),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(raftlog.MaxMessageBytes)),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
	)
}

// connect opens a connection. The kernel's keep-alive probes find a vanished peer while
// nothing is sent; gRPC's are no quicker than ten seconds.
func (p *Pool) connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := p.cfg.DialContext(ctx, address)
	if tcp, ok := conn.(*net.TCPConn); ok { // Without keep-alives a vanished peer is noticed later.
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3})
	}
	return conn, err
}

// call makes one unary call to a member. Its errors are those of decode.
func call[Req, Resp any](ctx context.Context, p *Pool, id []byte, req Req,
	method func(peerv1.MemberServiceClient, context.Context, Req, ...grpc.CallOption) (Resp, error),
) (response Resp, err error) {
	l, err := p.link(id)
	if err != nil {
		return response, err
	}
	response, err = method(l.client, ctx, req)
	return response, decode(err)
}

// Hello asks a node for its identity.
func (p *Pool) Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return onPort(ctx, p, tag, address, req, peerv1.JoinServiceClient.Hello)
}

// Join asks a node to be let into its cluster.
func (p *Pool) Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	return onPort(ctx, p, tag, address, req, peerv1.JoinServiceClient.Join)
}

// Members asks a member for the members as it knows them.
func (p *Pool) Members(ctx context.Context, id []byte) ([]*raftlogv1.Member, error) {
	response, err := call(ctx, p, id, &peerv1.MembersRequest{}, peerv1.MemberServiceClient.Members)
	return response.GetMembers(), err
}

// Transfer asks the leader to transfer leadership.
func (p *Pool) Transfer(ctx context.Context, id []byte, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	return call(ctx, p, id, req, peerv1.MemberServiceClient.Transfer)
}

// MayRemove asks the leader whether a member may be removed.
func (p *Pool) MayRemove(ctx context.Context, id []byte, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	return call(ctx, p, id, req, peerv1.MemberServiceClient.MayRemove)
}

// ReadIndex asks the leader for a read index. A failure changes nothing.
func (p *Pool) ReadIndex(ctx context.Context, id []byte) (uint64, error) {
	response, err := call(ctx, p, id, &peerv1.ReadIndexRequest{}, peerv1.MemberServiceClient.ReadIndex)
	if err != nil {
		return 0, outcome.NewNotApplied(outcome.ReasonOf(err), err)
	}
	return response.GetIndex(), nil
}

// Ping asks a member for its condition. A connection with maxMissedPings unanswered pings is
// closed, with the groups on it.
func (p *Pool) Ping(ctx context.Context, id []byte, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	l, err := p.link(id)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	response, err := l.client.Ping(ctx, req)
	if l.pinged(errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(started) >= leastPing) >= maxMissedPings {
		p.cfg.Logger.Info("giving up a connection on which nothing comes back", "id", nodeid.ID(id).String())
		p.drop(id, l)
	}
	return response, decode(err)
}

// Awake reports that a member has called: a connection to it that waits for its next attempt
// tries at once.
func (p *Pool) Awake(id []byte) {
	p.mu.Lock()
	l := p.links[string(id)]
	p.mu.Unlock()
	if l != nil && l.conn.GetState() == connectivity.TransientFailure {
		l.conn.ResetConnectBackoff()
	}
}

// Forward sends a group to the leader and returns the result of its state machine. The error
// is an *outcome.Error: NotApplied only if this call certainly put the group in no log.
func (p *Pool) Forward(ctx context.Context, id, group []byte) (raftlog.GroupResult, error) {
	l, err := p.link(id)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	traceparent := ""
	if p.cfg.Traceparent != nil {
		traceparent = p.cfg.Traceparent(ctx)
	}
	return l.forward(ctx, group, traceparent)
}
