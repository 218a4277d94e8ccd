package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/pause"
)

// strangersPerSecond bounds the accepted connections from addresses of no member, after a burst
// of strangersBurst. A member that comes from a new address waits among them, once.
const strangersPerSecond, strangersBurst = 100, 64

// stream is the raft.StreamLayer: it gives the library only connections whose other end was
// checked.
type stream struct {
	cfg     Config
	cluster clusterID
	local   nodeid.ID
	self    raft.ServerID // The text of local.
	conns   *conns
	// silent are the accepted connections on which no byte has arrived, pending those in a
	// handshake. They are separate so that silent connections take no slot of a handshake.
	silent, pending *pending
	nodes           *nodes
	// refusals limits the log lines about connections that this node refuses, and refused
	// those about its own dials and members' logs, which strangers must not suppress.
	refusals, refused *limiter
	// setBack means that a member has seen data of this node's disk that the disk has lost.
	setBack atomic.Bool

	// know is dividedPort.Know.
	know func(member net.Addr)
	// ready hands accepted connections to Accept, and calls those for calls to Calls.
	ready, calls chan net.Conn
	// ctx ends with Close.
	ctx    context.Context
	cancel context.CancelFunc
	// work counts the accept loops and the handshakes.
	work sync.WaitGroup
}

func newStream(cfg Config) *stream {
	ctx, cancel := context.WithCancel(context.Background())
	local, _ := nodeid.Parse(cfg.LocalID)
	s := &stream{
		cfg: cfg, cluster: clusterID(cfg.ClusterID), local: local, self: raft.ServerID(cfg.LocalID),
		conns:   newConns(),
		silent:  newPending(cfg.MaxPending),
		pending: newPending(cfg.MaxPending),
		nodes:   newNodes(), refusals: newLimiter(refusalLogEvery), refused: newLimiter(refusalLogEvery),
		ready: make(chan net.Conn), calls: make(chan net.Conn),
		ctx: ctx, cancel: cancel, know: func(net.Addr) {},
	}
	if port, ok := cfg.Listener.(dividedPort); ok {
		s.know = port.Know
		s.work.Go(func() { s.acceptLoop(port.Strangers(), rate.NewLimiter(strangersPerSecond, strangersBurst)) })
	}
	s.work.Go(func() { s.acceptLoop(cfg.Listener, rate.NewLimiter(rate.Inf, 0)) })
	return s
}

// dividedPort is a port that accepts connections from members' known addresses. Strangers accepts
// those from all other addresses.
type dividedPort interface {
	Strangers() net.Listener
	Know(member net.Addr)
}

// acceptLoop accepts connections at a rate. It never waits for the other side.
func (s *stream) acceptLoop(port net.Listener, atMost *rate.Limiter) {
	for {
		_ = atMost.Wait(s.ctx)
		raw, err := port.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				_ = raw.Close()
			}
			return
		}
		if err != nil {
			s.cfg.Logger.Warn("accepting a Raft connection failed", "error", err)
			pause.For(s.ctx, 100*time.Millisecond) // There may be no file descriptors.
			continue
		}
		// Added here and not in the goroutine, so that the oldest is the first accepted.
		spoke := s.silent.add(raw)
		s.work.Go(func() { s.handshake(raw, spoke) })
	}
}

// handshake admits an accepted connection, or closes it. spoke removes the connection from
// silent.
func (s *stream) handshake(raw net.Conn, spoke func()) {
	admitted, g, err := s.admit(raw, spoke)
	if err != nil {
		_ = raw.Close()
		s.logRefusal(raw, err)
		return
	}
	if admitted == nil {
		_ = raw.Close() // The connection was a probe.
		return
	}
	setKeepAlive(raw, g.Purpose)
	c := &conn{Conn: admitted, raw: raw, peer: g.Dialler.String(), process: g.Process, accepted: g.Purpose == forRaft}
	if !s.conns.add(c) || s.removed(c.peer) {
		_ = c.Close()
		return
	}
	to, handed := s.ready, net.Conn(c)
	if g.Purpose == forCalls {
		to, handed = s.calls, callsConn{c}
	}
	select {
	case to <- handed:
	case <-s.ctx.Done():
		_ = c.Close()
	}
}

// removed reports whether a member was removed since its greeting was checked.
// Connections of members removed later are closed by Disconnect.
func (s *stream) removed(id string) bool {
	peer, ok := s.cfg.Directory.Lookup(id)
	return ok && peer.Removed
}

func (s *stream) logRefusal(raw net.Conn, err error) {
	var bad *badGreetingError
	status := "handshake"
	if errors.As(err, &bad) {
		status = bad.status.String()
	}
	if s.ctx.Err() == nil && s.refusals.allow(remoteHost(raw)+" "+status) {
		s.cfg.Logger.Warn("a Raft connection was refused", "from", raw.RemoteAddr().String(), "error", err)
	}
}

func remoteHost(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

func (s *stream) Accept() (net.Conn, error) { return s.next(s.ready) }

func (s *stream) next(of <-chan net.Conn) (net.Conn, error) {
	select {
	case c := <-of:
		return c, nil
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It closes every connection, and returns when no handshake
// runs, which is soon, since each has lost its connection.
func (s *stream) Close() error {
	s.cancel()
	err := s.cfg.Listener.Close()
	s.silent.shut()
	s.pending.shut()
	s.conns.shut()
	s.work.Wait()
	return err
}

// Addr implements net.Listener. To Raft, a server's address is its id.
func (s *stream) Addr() net.Addr { return raftAddr(s.self) }

// Dial implements raft.StreamLayer; the address is an id.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.open(address, timeout, 0)
}

func (s *stream) open(address raft.ServerAddress, timeout, stall time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, min(timeout, DefaultDialTimeout))
	defer cancel()
	c, err := s.dial(ctx, string(address), forRaft, stall)
	if err != nil {
		return nil, &dialError{err}
	}
	return c, nil
}

type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

type raftAddr string

func (raftAddr) Network() string  { return "raft" }
func (a raftAddr) String() string { return string(a) }
