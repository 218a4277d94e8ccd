package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
)

// ErrUnknownPeer means that the Directory does not have the node to dial.
var ErrUnknownPeer = errors.New("the table of members does not have this node")

// RefusedError is the error of a dial that a node refused.
type RefusedError struct {
	By     Peer
	Status Status
	// why is a further cause, or nil.
	why error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("node %s at %s refused the connection: %s", e.By.Tag, e.By.Address, e.reason())
}

func (e *RefusedError) reason() string {
	if e.why != nil {
		return e.why.Error()
	}
	return e.Status.String()
}

func (s *stream) lookup(id string) (Peer, error) {
	peer, ok := s.cfg.Directory.Lookup(id)
	if !ok {
		return peer, fmt.Errorf("dialling %s: %w", id, ErrUnknownPeer)
	}
	return peer, nil
}

// dial connects to a member for messages, with stall for snapshots (see conn), or for calls.
func (s *stream) dial(ctx context.Context, target string, why purpose, stall time.Duration) (net.Conn, error) {
	peer, err := s.lookup(target)
	if err != nil {
		return nil, err
	}
	if peer.Removed {
		return nil, net.ErrClosed
	}
	open, err := s.greet(ctx, peer, why)
	if err != nil {
		s.noteRefusal(err)
		return nil, err
	}
	c := &conn{Conn: open.conn, raw: open.raw, peer: peer.ID, process: open.answer.Process, stall: stall}
	if !s.conns.add(c) || s.removed(peer.ID) {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (s *stream) noteRefusal(err error) {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return
	}
	if refused.Status == SetBack {
		s.setBack.Store(true) // First: the end of the process waits for its disk.
	}
	if s.refused.allow(refused.By.ID + refused.Status.String()) {
		s.cfg.Logger.Warn("a node refused our Raft connection",
			"tag", refused.By.Tag, "address", refused.By.Address, "status", refused.reason())
	}
	s.cfg.OnRefused(refused.By, refused.Status)
}

type greeted struct {
	conn, raw net.Conn
	answer    greetingReply
}

// greet connects to a node, runs both handshakes, and checks that it is the intended node. The
// returned connection has no deadline.
func (s *stream) greet(ctx context.Context, peer Peer, why purpose) (greeted, error) {
	if err := s.nodes.heldBack(peer); err != nil && why != forProbe {
		return greeted{}, err
	}
	open, err := s.tryGreet(ctx, peer, why)
	switch {
	case processAnswers(err):
		s.nodes.reached(raft.ServerID(peer.ID))
	case why != forProbe && !errors.Is(ctx.Err(), context.Canceled): // probeTimeout is too short to tell that a member is down.
		s.nodes.unreached(raft.ServerID(peer.ID), err)
		if held := s.nodes.heldBack(peer); held != nil && s.refused.allow(peer.ID+"unseen") {
			s.cfg.Logger.Warn("a member that has not answered yet is dialled less and less often",
				"tag", peer.Tag, "address", s.addressOf(peer), "error", held)
		}
	}
	return open, err
}

// processAnswers reports whether a dial's error, nil included, means that the member's
// process answered.
func processAnswers(err error) bool {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Status != WrongTarget && refused.Status != WrongCluster
	}
	return err == nil
}

func (s *stream) tryGreet(ctx context.Context, peer Peer, why purpose) (greeted, error) {
	target, err := nodeid.Parse(peer.ID)
	if err != nil {
		return greeted{}, err
	}
	raw, err := s.cfg.DialContext(ctx, s.addressOf(peer))
	if err != nil {
		return greeted{}, fmt.Errorf("dialling %s: %w", peer.Tag, err)
	}
	setKeepAlive(raw, why)
	// A timeout, or the end of the transport, ends every wait below.
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	conn, a, err := s.introduce(ctx, raw, peer, greeting{why, s.cluster, s.local, target, s.cfg.Process, s.cfg.Witness.Own()})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return greeted{}, err
	}
	s.know(raw.RemoteAddr())
	if why != forProbe {
		s.nodes.accepted(raft.ServerID(peer.ID))
	}
	return greeted{conn: conn, raw: raw, answer: a}, nil
}

// DialTCP connects to an IP address and a port. Names are looked up before: see peers.Hosts.
func DialTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

func (s *stream) addressOf(peer Peer) string {
	if address, ok := s.cfg.Dial[peer.Tag]; ok {
		return address
	}
	return peer.Address
}

func (s *stream) introduce(ctx context.Context, raw net.Conn, peer Peer, g greeting) (net.Conn, greetingReply, error) {
	conn, err := s.dialTLS(ctx, raw, peer)
	if err != nil {
		return nil, greetingReply{}, err
	}
	seen := s.cfg.Witness.Seen(peer.ID) // Read before the answer, which is newer.
	if _, err := conn.Write(encode(g)); err != nil {
		return nil, greetingReply{}, fmt.Errorf("greeting %s: %w", peer.Tag, err)
	}
	a, err := readReply(conn)
	var other versionError
	switch {
	case errors.As(err, &other):
		return nil, a, &RefusedError{By: peer, Status: OtherVersion, why: other}
	case err != nil:
		return nil, a, fmt.Errorf("greeting %s: %w", peer.Tag, err)
	case a.Status != OK:
		return nil, a, &RefusedError{By: peer, Status: a.Status}
	case a.ID != g.Target:
		return nil, a, fmt.Errorf("greeting %s: %s answered", peer.Tag, a.ID)
	}
	if g.Purpose == forProbe {
		return conn, a, nil
	}
	if err := s.cfg.Witness.Accept(a.ID.String(), a.Process, a.Disk, seen); err != nil {
		return nil, a, fmt.Errorf("%s was set back to an older copy of its data directory: %w", peer.Tag, err)
	}
	s.nodes.tell(raft.ServerID(peer.ID), a.Disk)
	s.replaced(peer.ID, a.Process)
	return conn, a, nil
}

func (s *stream) dialTLS(ctx context.Context, raw net.Conn, peer Peer) (net.Conn, error) {
	if s.cfg.TLS == nil {
		return raw, nil
	}
	config, err := s.cfg.TLS.Client(peer.Tag)
	if err != nil {
		return nil, err
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = peer.Tag
	}
	conn, state, err := secure(ctx, tls.Client(raw, config))
	if err != nil {
		return nil, fmt.Errorf("TLS with %s: %w", peer.Tag, err)
	}
	if !s.cfg.TLS.NamesTag(*state, peer.Tag) {
		return nil, fmt.Errorf("TLS with %s: its certificate names another node", peer.Tag)
	}
	return conn, nil
}
