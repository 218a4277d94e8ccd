package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// admit runs both handshakes on an accepted connection. It returns the connection to use
// and the greeting of the member at its other end; a probe is answered, and admitted is nil.
// Only the greeting is read before all checks pass. spoke removes the connection from
// stream.silent.
func (s *stream) admit(raw net.Conn, spoke func()) (admitted net.Conn, g greeting, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.AcceptTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, g, err
	}
	first, err := awaitFirst(raw)
	spoke()
	if err != nil {
		return nil, g, err
	}
	defer s.pending.add(raw)()
	conn, state, err := s.serveTLS(ctx, first)
	if err != nil {
		return nil, g, err
	}
	g, err = readGreeting(conn)
	if errors.As(err, new(versionError)) {
		tellVersion(conn)
	}
	if err != nil {
		return nil, g, fmt.Errorf("reading the greeting: %w", err)
	}
	status, why := s.judge(ctx, g, state)
	a := greetingReply{Status: status, ID: s.local, Process: s.cfg.Process}
	if status == OK { // Other nodes need not know why.
		s.know(raw.RemoteAddr())
		a.Disk = s.cfg.Witness.Own()
	}
	if _, err := conn.Write(encode(a)); err != nil {
		return nil, g, err
	}
	if status != OK {
		return nil, g, &badGreetingError{g, status, why}
	}
	if !g.Purpose.lasts() {
		return nil, g, nil
	}
	return conn, g, conn.SetDeadline(time.Time{})
}

// begun is a connection whose first byte was read. all reads that byte again.
type begun struct {
	net.Conn
	all io.Reader
}

func (b begun) Read(p []byte) (int, error) { return b.all.Read(p) }

// awaitFirst waits for the first byte of a connection. The connections of a flood send none,
// so a silent connection gets no more than this wait.
func awaitFirst(raw net.Conn) (net.Conn, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(raw, first); err != nil {
		return nil, err
	}
	return begun{raw, io.MultiReader(bytes.NewReader(first), raw)}, nil
}

// tellVersion answers a greeting of another version of the handshake. It reads the rest of
// the greeting: closing a connection with unread bytes may lose the answer.
func tellVersion(conn net.Conn) {
	if _, err := conn.Write([]byte(opening)); err == nil {
		_, _ = io.CopyN(io.Discard, conn, maxOtherGreeting)
	}
}

type badGreetingError struct {
	greeting greeting
	status   Status
	// why is a further cause, or nil.
	why error
}

func (e *badGreetingError) Error() string {
	text := fmt.Sprintf("%s of cluster %x asked for %s: %s", e.greeting.Dialler, e.greeting.Cluster, e.greeting.Target, e.status)
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	return text
}

func (s *stream) serveTLS(ctx context.Context, raw net.Conn) (net.Conn, *tls.ConnectionState, error) {
	if s.cfg.TLS == nil {
		return raw, nil, nil
	}
	config, err := s.cfg.TLS.Server()
	if err != nil {
		return nil, nil, err
	}
	return secure(ctx, tls.Server(raw, config))
}

// secure runs a TLS handshake. It requires a verified certificate of the other side, even if
// the configuration does not.
func secure(ctx context.Context, conn *tls.Conn) (net.Conn, *tls.ConnectionState, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	state := conn.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		return nil, nil, errors.New("the other side's certificate was not verified")
	}
	return conn, &state, nil
}

// judge decides about a greeting. The error has the reason if the dialler was set back.
func (s *stream) judge(ctx context.Context, g greeting, state *tls.ConnectionState) (Status, error) {
	if g.Purpose > forCalls {
		return OtherVersion, nil
	}
	peer, status := s.identify(g, state)
	if status != OK || g.Purpose == forProbe {
		return status, nil
	}
	seen, disk, asked := s.cfg.Witness.Seen(peer.ID), g.Disk, witness.Seen{}
	id := raft.ServerID(peer.ID)
	if s.nodes.get(id).process != g.Process || seen.Contradicts(g.Process, g.Disk) != nil {
		if a, ok := s.probe(ctx, peer); ok && a.Process != g.Process {
			return Impostor, nil
		} else if ok {
			disk, asked = a.Disk, seen // Unlike the greeting, the answer is newer than seen.
		}
	}
	if err := s.cfg.Witness.Accept(peer.ID, g.Process, disk, asked); err != nil {
		return SetBack, err
	}
	s.nodes.greeted(id)
	s.nodes.tell(id, disk)
	s.replaced(peer.ID, g.Process)
	return OK, nil
}

// replaced closes the connections with former processes of a member. A machine that lost
// power closes none: until TCP notices, each request on such a connection times out.
func (s *stream) replaced(id string, process uint64) {
	s.conns.closeIf(func(c *conn) bool { return c.peer == id && c.process != process })
}

// identify returns the member that a dialler claims to be, and whether its claim is true.
func (s *stream) identify(g greeting, state *tls.ConnectionState) (Peer, Status) {
	if g.Cluster != s.cluster {
		return Peer{}, WrongCluster
	}
	if g.Target != s.local {
		return Peer{}, WrongTarget
	}
	peer, ok := s.cfg.Directory.Lookup(g.Dialler.String())
	switch {
	case !ok:
		return peer, NotMember
	case peer.Removed:
		return peer, Removed
	case state != nil && !s.cfg.TLS.NamesTag(*state, peer.Tag):
		return peer, WrongCertificate
	case g.Dialler == s.local:
		// A node never dials itself, but a copy of its directory does.
		return peer, Impostor
	}
	return peer, OK
}

// probe asks the process at a member's own address for its process number and its disk state.
// Without TLS nothing else distinguishes a copied or forged data directory from the member.
// A member whose address does not answer is accepted: the network may be cut in one
// direction, or the address be new.
func (s *stream) probe(ctx context.Context, peer Peer) (greetingReply, bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	member, err := s.greet(ctx, peer, forProbe)
	if err != nil {
		return greetingReply{}, false
	}
	_ = member.raw.Close()
	s.nodes.change(raft.ServerID(peer.ID), func(n *knownNode) { n.process = member.answer.Process })
	return member.answer, true
}

// limiter passes each key once per interval, so that a peer's retries do not fill the log.
type limiter struct {
	mu    sync.Mutex
	every time.Duration
	last  map[string]time.Time
}

// maxLimiterKeys bounds the memory that unknown peers can make a limiter use, and the number
// of lines it passes for them.
const maxLimiterKeys = 1024

func newLimiter(every time.Duration) *limiter {
	return &limiter{every: every, last: map[string]time.Time{}}
}

func (l *limiter) allow(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, ok := l.last[key]; ok && now.Sub(last) < l.every {
		return false
	}
	if len(l.last) >= maxLimiterKeys {
		maps.DeleteFunc(l.last, func(_ string, last time.Time) bool { return now.Sub(last) >= l.every })
	}
	if len(l.last) >= maxLimiterKeys {
		return false
	}
	l.last[key] = now
	return true
}
