package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// connectTimeout bounds one attempt to connect, with lookup and handshake.
	connectTimeout = 1500 * time.Millisecond
	// maxBackoff is the longest wait between two attempts to connect.
	maxBackoff = 500 * time.Millisecond
	// pingAfter is how long a connection may be silent before gRPC pings the other end: the
	// least that gRPC allows, and more than the minimum that nodes enforce, 5 s. pingTimeout is
	// how long it waits for the answer. On Linux that is also how long sent bytes may stay
	// unacknowledged, so a connection whose packets are dropped ends pingTimeout after a call.
	pingAfter   = 10 * time.Second
	pingTimeout = 3 * time.Second
	// maxAnswerBytes bounds an answer: several times a page of 1,000 names of 2,000 bytes.
	maxAnswerBytes = 32 << 20
)

// node is one address and the connection to it, which gRPC makes again after it broke.
type node struct {
	router  *router
	address string
	conn    *grpc.ClientConn
	api     *api
	// suspectUntil is until when other nodes are preferred, in nanoseconds since epoch; 0 if
	// the last try succeeded.
	suspectUntil atomic.Int64
	// told means that the node has told the client's own cluster.
	told atomic.Bool
	// shown is the certificate that the client has shown in the newest handshake; nil if the node has
	// not asked for one.
	shown atomic.Pointer[tls.Certificate]

	mu sync.Mutex
	// flow is the Exchange stream, opened for the first call, and again after it broke.
	flow *flow
}

// api has the methods of all services that this package uses.
type api struct {
	idnodev1.ClusterServiceClient
	idnodev1.IdsServiceClient
	idnodev1.SeriesServiceClient
	idnodev1.SnowflakeServiceClient
}

// epoch is the origin of the client's own times. They use the monotonic clock: a wall clock
// that is set back would prolong a suspicion.
var epoch = time.Now()

// newNode prepares a connection. Nothing is sent before the first call.
func (r *router) newNode(address string) (*node, error) {
	cfg := r.cfg
	n := &node{router: r, address: address}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		n.shown.Store(nil)
		if cfg.Dial != nil {
			return cfg.Dial(ctx, address)
		}
		return dialTCP(ctx, address)
	}
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff}
	options := append([]grpc.DialOption{grpc.WithUserAgent(userAgent())}, cfg.DialOptions...)
	options = append(options,
		grpc.WithTransportCredentials(r.secured.credentials(n)),
		grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerBytes)),
		// This package alone decides about retries, and a cluster is not reached through a web
		// proxy.
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
	)
	conn, err := grpc.NewClient("passthrough:///"+url.PathEscape(address), options...)
	if err != nil {
		return nil, err
	}
	n.conn = conn
	n.api = &api{
		idnodev1.NewClusterServiceClient(conn), idnodev1.NewIdsServiceClient(conn),
		idnodev1.NewSeriesServiceClient(conn), idnodev1.NewSnowflakeServiceClient(conn),
	}
	return n, nil
}

// tlsFor returns base with its ServerName filled in.
func tlsFor(base *tls.Config, address string) *tls.Config {
	cfg := base.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	return cfg
}

// dialTCP looks the host up at each call, with a resolver of its own: the shared one lets a
// dial join a lookup in progress, which may have started while this machine was cut off.
func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{
		Resolver: &net.Resolver{}, Timeout: connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3},
	}
	return d.DialContext(ctx, "tcp", address)
}

// ready waits until the connection is up, so that a failure before is known to have done
// nothing. The error is that of unreachable.
func (n *node) ready(ctx context.Context) error {
	if n.conn.GetState() == connectivity.Ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for {
		state := n.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Shutdown:
			return unreachable(n.address, errors.New("the connection was closed"))
		case connectivity.TransientFailure:
			// A call that does not wait fails at once, with the last error of the connection.
			_, err := n.api.GetStatus(ctx, &idnodev1.GetStatusRequest{})
			return n.unreachable(cmp.Or(err, errors.New("the connection broke")))
		}
		n.conn.Connect()
		if !n.conn.WaitForStateChange(ctx, state) {
			return unreachable(n.address, errors.New("no connection in time"))
		}
	}
}

// suspect makes routes prefer other nodes for a while.
func (n *node) suspect() { n.suspectUntil.Store(int64(time.Since(epoch) + distrust)) }

// trust ends a suspicion.
func (n *node) trust() {
	if n.suspectUntil.Load() != 0 {
		n.suspectUntil.Store(0)
	}
}

func (n *node) suspected() bool {
	until := n.suspectUntil.Load()
	return until != 0 && int64(time.Since(epoch)) < until
}

// userAgent returns the name that nodes see, such as idnode-go/1.2.3. The version is that of the
// client's module in the program, in idnode's own programs that of their module; without one, or
// with a folder in its place, it is "devel".
func userAgent() string {
	const program = "github.com/idnode/idnode"
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			named := m.Path == program || m.Path == program+"/client" && m.Replace == nil
			if number, released := strings.CutPrefix(m.Version, "v"); named && released {
				version = number
			}
		}
	}
	return "idnode-go/" + version
}
