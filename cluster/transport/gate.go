package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/nodeid"
)

// greetedNodes are those that this process has greeted, and that have accepted it.
type greetedNodes struct {
	mu  sync.Mutex
	all map[nodeid.ID]struct{}
}

func newGreetedNodes() *greetedNodes { return &greetedNodes{all: map[nodeid.ID]struct{}{}} }

func (g *greetedNodes) add(node nodeid.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all[node] = struct{}{}
}

func (g *greetedNodes) has(node nodeid.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.all[node]
	return ok
}

// errNotGreeted is the answer to an early request for a vote, and the error of this
// node's own.
var errNotGreeted = errors.New("this node has just started, and has not been accepted by enough voters yet")

// gate holds back votes, pre-votes and campaigns, its own too, until all voters have
// accepted this process; or a majority has, and the others had time to answer: one of
// them may have seen more of this process's disk. It closes permanently if a member has.
type gate struct {
	voters  func() []raft.ServerID
	self    nodeid.ID
	greeted *greetedNodes
	setBack *atomic.Bool
	// waited means that the others had time to answer. A clock cannot decide that: the
	// greetings start some time after the process, and answers may be unread after a
	// pause.
	waited atomic.Bool
	// opened stays set.
	opened atomic.Bool
}

// newGate returns nil where none is wanted.
func newGate(s *stream) *gate {
	if s.cfg.Voters == nil {
		return nil
	}
	return &gate{voters: s.cfg.Voters, self: s.local, greeted: s.greeted, setBack: &s.setBack}
}

// pass reports whether Raft gets a request; if not, it is answered here. Its sender has
// accepted this process: it compared the answer to its greeting before it sent anything.
func (g *gate) pass(rpc raft.RPC) bool {
	if g == nil {
		return true
	}
	if r, ok := rpc.Command.(raft.WithRPCHeader); ok && !g.opened.Load() {
		if sender, err := nodeid.Parse(string(r.GetRPCHeader().ID)); err == nil {
			g.greeted.add(sender)
		}
	}
	if !g.open() {
		rpc.Respond(nil, errNotGreeted)
		return false
	}
	return true
}

// open reports whether this process may take part in elections.
func (g *gate) open() bool {
	switch {
	case g == nil:
		return true
	case g.setBack.Load():
		return false
	case g.opened.Load():
		return true
	}
	voters := g.voters()
	accepted := g.accepted(voters)
	if accepted <= len(voters)/2 || accepted < len(voters) && !g.waited.Load() {
		return false
	}
	g.opened.Store(true)
	return true
}

// accepted returns how many of the voters have accepted this process, itself counted.
func (g *gate) accepted(voters []raft.ServerID) int {
	n := 0
	for _, v := range voters {
		if node, err := nodeid.Parse(string(v)); err == nil && (node == g.self || g.greeted.has(node)) {
			n++
		}
	}
	return n
}

// Greeted reports whether a node has accepted a greeting of this process.
func (t *Transport) Greeted(id raft.ServerID) bool {
	node, err := nodeid.Parse(string(id))
	return err == nil && t.stream.greeted.has(node)
}

// StopWaiting tells that the members which have not accepted this process had time to
// answer its greetings. From now on a majority is enough for it to vote.
func (t *Transport) StopWaiting() {
	if g := t.inbound.gate; g != nil {
		g.waited.Store(true)
	}
}

// Greet only greets a node, so that each learns the state of the other's disk.
func (t *Transport) Greet(ctx context.Context, id raft.ServerID) error {
	peer, ok := t.stream.cfg.Directory.Lookup(string(id))
	if !ok {
		return fmt.Errorf("greeting %s: %w", id, ErrUnknownPeer)
	}
	ctx, cancel := context.WithTimeout(ctx, t.stream.cfg.DialTimeout)
	defer cancel()
	open, err := t.stream.greet(ctx, peer, forAcceptance)
	if err != nil {
		t.stream.noteRefusal(err)
		return err
	}
	return open.raw.Close()
}

// Process returns this process's random number, as others know it.
func (t *Transport) Process() uint64 { return t.stream.instance.number() }
