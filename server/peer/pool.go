package peer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

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
	// Introduce returns this node's identity; it is called for every call.
	Introduce func() Introduction
	// Credentials returns the credentials for a connection to the node with this tag, whose
	// certificate must name it; an empty tag means any node. Nil means connections without
	// TLS.
	Credentials func(tag string) credentials.TransportCredentials
	// Dial overrides the addresses of nodes, by tag.
	Dial map[string]string
	// DialContext opens connections.
	DialContext func(ctx context.Context, address string) (net.Conn, error)
	// Traceparent returns the W3C traceparent of the trace in ctx, which is sent with a
	// group; empty if there is none. Nil means never.
	Traceparent func(ctx context.Context) string
	Logger      *slog.Logger
}

// Pool holds the connections to other nodes. It is safe for concurrent use.
type Pool struct {
	cfg    PoolConfig
	mu     sync.Mutex
	links  map[target]*link
	closed bool
}

type target struct{ tag, address string }

// NewPool returns a Pool without connections; they are made on use, and again after they
// broke.
func NewPool(cfg PoolConfig) *Pool {
	return &Pool{cfg: cfg, links: map[target]*link{}}
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

func (p *Pool) target(tag, address string) target {
	if override, ok := p.cfg.Dial[tag]; ok && tag != "" {
		address = override
	}
	return target{tag, address}
}

func (p *Pool) link(tag, address string) (*link, error) {
	to := p.target(tag, address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, outcome.NewNotApplied(outcome.Stopping, errClosed)
	}
	if l, ok := p.links[to]; ok {
		return l, nil
	}
	l := &link{introduce: p.cfg.Introduce}
	if err := p.dial(to, l); err != nil {
		return nil, outcome.NewNotApplied(outcome.Unspecified, err)
	}
	p.links[to] = l
	return l, nil
}

// Disconnect closes the connections to a node.
func (p *Pool) Disconnect(tag string) {
	p.dropIf(func(of string, _ *link) bool { return of == tag })
}

// Restarted records the process number of a node, and closes connections to its former
// process: a machine that lost power has closed none.
func (p *Pool) Restarted(tag string, process uint64) {
	p.dropIf(func(of string, l *link) bool {
		answered := l.process.Load()
		return of == tag && answered != 0 && answered != process
	})
}

// dropIf closes the connections for which match, given the node's tag, returns true; the next
// call makes a new one.
func (p *Pool) dropIf(match func(tag string, l *link) bool) {
	p.mu.Lock()
	var dropped []*link
	for to, l := range p.links {
		if match(to.tag, l) {
			dropped = append(dropped, l)
			delete(p.links, to)
		}
	}
	p.mu.Unlock()
	for _, l := range dropped {
		l.close()
	}
}

// dial prepares a connection without sending anything. The address is looked up at each
// attempt to connect, because a node may come back with another IP.
func (p *Pool) dial(to target, l *link) error {
	creds := insecure.NewCredentials()
	if p.cfg.Credentials != nil {
		creds = p.cfg.Credentials(to.tag)
	}
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}
	conn, err := grpc.NewClient("passthrough:///"+to.address,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			l.process.Store(0)
			return p.connect(ctx, address)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(raftlog.MaxMessageBytes)),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
	)
	if err == nil {
		l.conn, l.client = conn, peerv1.NewPeerServiceClient(conn)
	}
	return err
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

// call makes one unary call. Its errors are those of decode.
func call[Req, Resp any](ctx context.Context, p *Pool, as Introduction, tag, address string, req Req,
	method func(peerv1.PeerServiceClient, context.Context, Req, ...grpc.CallOption) (Resp, error),
) (Resp, error) {
	l, err := p.link(tag, address)
	if err != nil {
		var none Resp
		return none, err
	}
	response, err := method(l.client, as.outgoing(ctx), req)
	return response, decode(err)
}

// introduce returns the introduction of a node that states its own identity m: m may have a
// requested tag that the node does not have yet.
func (p *Pool) introduce(m *raftlogv1.Member) Introduction {
	as := p.cfg.Introduce()
	as.Tag = m.GetTag()
	return as
}

// Hello asks a node for its identity.
func (p *Pool) Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return call(ctx, p, p.introduce(req.GetSelf()), tag, address, req, peerv1.PeerServiceClient.Hello)
}

// Join asks a node to add m of req to its cluster.
func (p *Pool) Join(ctx context.Context, tag, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	return call(ctx, p, p.introduce(req.GetMember()), tag, address, req, peerv1.PeerServiceClient.Join)
}

// Transfer asks the leader to transfer leadership.
func (p *Pool) Transfer(ctx context.Context, tag, address string, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	return call(ctx, p, p.cfg.Introduce(), tag, address, req, peerv1.PeerServiceClient.Transfer)
}

// MayRemove asks the leader whether a member may be removed.
func (p *Pool) MayRemove(ctx context.Context, tag, address string, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	return call(ctx, p, p.cfg.Introduce(), tag, address, req, peerv1.PeerServiceClient.MayRemove)
}

// ReadIndex asks the leader for a read index. A failure changes nothing.
func (p *Pool) ReadIndex(ctx context.Context, tag, address string) (uint64, error) {
	response, err := call(ctx, p, p.cfg.Introduce(), tag, address, &peerv1.ReadIndexRequest{}, peerv1.PeerServiceClient.ReadIndex)
	if err != nil {
		return 0, outcome.NewNotApplied(outcome.ReasonOf(err), err)
	}
	return response.GetIndex(), nil
}

// Ping asks a node for its status. A connection with maxMissedPings unanswered pings is
// closed, with the groups on it.
func (p *Pool) Ping(ctx context.Context, tag, address string, req *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	l, err := p.link(tag, address)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	response, err := l.client.Ping(p.cfg.Introduce().outgoing(ctx), req)
	if l.pinged(errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(started) >= leastPing) >= maxMissedPings {
		p.cfg.Logger.Info("giving up a connection on which nothing comes back", "tag", tag, "address", address)
		p.dropIf(func(_ string, have *link) bool { return have == l })
	}
	if err == nil {
		l.process.Store(response.GetProcess())
	}
	return response, decode(err)
}

// Awake reports that a node has called: a connection to it that waits for its next attempt
// tries at once.
func (p *Pool) Awake(tag, address string) {
	to := p.target(tag, address)
	p.mu.Lock()
	l := p.links[to]
	p.mu.Unlock()
	if l != nil && l.conn.GetState() == connectivity.TransientFailure {
		l.conn.ResetConnectBackoff()
	}
}

// Forward sends a group to the leader and returns the result of its state machine. The error
// is an *outcome.Error: NotApplied only if this call certainly put the group in no log.
func (p *Pool) Forward(ctx context.Context, tag, address string, group []byte) (raftlog.GroupResult, error) {
	l, err := p.link(tag, address)
	if err != nil {
		return raftlog.GroupResult{}, err
	}
	traceparent := ""
	if p.cfg.Traceparent != nil {
		traceparent = p.cfg.Traceparent(ctx)
	}
	return l.forward(ctx, group, traceparent)
}
