package transport

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
)

// errNotGreeted is the answer to an early request for a vote, and the error of this node's
// own campaign.
var errNotGreeted = errors.New("this node has just started, and has not been accepted by enough voters yet")

// errNotFurthest is the answer to a request for a vote, and the error of this node's own
// campaign, if an operator trusts the data directory and another voter has a longer log.
var errNotFurthest = errors.New("a voter that has greeted this node, whose data directory is trusted, has a longer log")

// gate holds back votes, pre-votes and campaigns, this node's own included, until all voters
// have accepted this process, or a majority has and the others had time to answer: one of
// them may have seen more of this process's disk. Such an answer closes the gate permanently.
//
// Where an operator trusts the data directory, votes that it gave and entries that it
// acknowledged may be lost. A majority of such nodes could elect one of them, and take back
// entries that another node still has. So such a node votes and campaigns only for a log
// that is as up-to-date as the logs of all voters that greeted it, until under a leader its
// own log has been so.
type gate struct {
	s *stream
	// waited means that the other voters had time to answer. A clock cannot decide that: the
	// greetings start some time after the process, and answers may be unread after a pause.
	waited atomic.Bool
	// opened stays set.
	opened atomic.Bool

	// trusted means that an operator trusts the data directory.
	trusted bool
	// led returns the newest term of a leader that was heard, 0 if none was.
	led func() uint64
	// caughtUp stays set once a trusted directory has all entries of the greeted voters.
	caughtUp atomic.Bool
}

// pass reports whether Raft gets a request; if not, pass answers it. The sender has accepted
// this process: it compared the answer to its greeting before it sent anything else.
func (g *gate) pass(rpc raft.RPC) bool {
	if r, ok := rpc.Command.(raft.WithRPCHeader); ok && !g.opened.Load() {
		if id, err := nodeid.Parse(string(r.GetRPCHeader().ID)); err == nil {
			g.s.nodes.accepted(raft.ServerID(id.String()))
		}
	}
	err := errNotGreeted
	if g.open() {
		err = g.mayElect(func() witness.DiskState { return g.logOf(rpc) })
	}
	if err != nil {
		rpc.Respond(nil, err)
		return false
	}
	return true
}

// logOf returns the disk state of the node that a request wants to be elected.
func (g *gate) logOf(rpc raft.RPC) witness.DiskState {
	switch r := rpc.Command.(type) {
	case *raft.RequestVoteRequest:
		return witness.DiskState{Last: r.LastLogIndex, LastTerm: r.LastLogTerm}
	case *raft.RequestPreVoteRequest:
		return witness.DiskState{Last: r.LastLogIndex, LastTerm: r.LastLogTerm}
	}
	return g.s.cfg.Witness.Own() // A request to this node to campaign.
}

// mayCampaign returns why this node may not campaign, or nil.
func (g *gate) mayCampaign() error {
	if !g.open() {
		return errNotGreeted
	}
	return g.mayElect(g.s.cfg.Witness.Own)
}

// mayElect returns why this node takes no part in the election of a node with this log, or nil.
func (g *gate) mayElect(log func() witness.DiskState) error {
	if !g.trusted || g.caughtUp.Load() {
		return nil
	}
	voters := g.s.cfg.Voters()
	if _, behind := g.s.nodes.beyond(voters, g.s.cfg.Witness.Own()); !behind && g.led() > 0 {
		g.caughtUp.Store(true)
		return nil
	}
	voter, behind := g.s.nodes.beyond(voters, log())
	if !behind {
		return nil
	}
	if peer, _ := g.s.cfg.Directory.Lookup(string(voter)); g.s.refused.allow("trusted " + peer.Tag) {
		g.s.cfg.Logger.Warn("this node, started with --trust-data, refuses candidates whose log is shorter than this voter's: start "+
			"the voter; if it is lost for good, restart this node with --trust-data while the voter is down", "voter", peer.Tag)
	}
	return errNotFurthest
}

func (g *gate) open() bool {
	switch {
	case g.s.setBack.Load():
		return false
	case g.opened.Load():
		return true
	}
	voters := g.s.cfg.Voters()
	accepted := g.accepted(voters)
	if accepted <= len(voters)/2 || accepted < len(voters) && !g.waited.Load() {
		return false
	}
	g.opened.Store(true)
	return true
}

// accepted returns the number of voters that have accepted this process, itself included.
func (g *gate) accepted(voters []raft.ServerID) int {
	n := 0
	for _, v := range voters {
		if v == g.s.self || g.s.nodes.get(v).accepted {
			n++
		}
	}
	return n
}

// StopWaiting reports that the members which have not accepted this process had time to
// answer its greetings. From then on a majority is enough for this process to vote.
func (t *Transport) StopWaiting() { t.inbound.gate.waited.Store(true) }

// Greet greets a node and closes the connection: both learn the other's disk state.
func (t *Transport) Greet(ctx context.Context, id raft.ServerID) error {
	peer, err := t.stream.lookup(string(id))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, DefaultDialTimeout)
	defer cancel()
	open, err := t.stream.greet(ctx, peer, forAcceptance)
	if err != nil {
		t.stream.noteRefusal(err)
		return err
	}
	return open.raw.Close()
}

// Process returns this process's random number, which other nodes know it by.
func (t *Transport) Process() uint64 { return t.stream.cfg.Process }
