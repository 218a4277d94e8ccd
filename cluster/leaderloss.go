package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/docid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// redialTimeout is how long a leader whose connections have ended has to answer a
	// new one. A process that is gone is refused at once; a container that is gone does
	// not answer at all.
	redialTimeout = 50 * time.Millisecond
	// lossAskEvery is the pause between questions to one voter: it may notice the loss a
	// moment later than this node.
	lossAskEvery = 2 * time.Millisecond
	// standTurn is how long a voter has to win the election before the next one stands.
	standTurn = 50 * time.Millisecond
)

// leaderLoss begins an election at once when the leader's process has ended. The heartbeat
// timeout would do the same later, so it only saves time, and it is careful: a leader that
// lives must not be deposed.
//
// The evidence: all connections from the leader have ended, it does not answer a new one,
// and a majority of the voters, this one included, says the same of the same leader in
// the same term. No quorum is left to such a leader. Voters stand one after another, those
// with more entries first, so that no two split the votes and the first one wins.
type leaderLoss struct {
	raft      *raft.Raft
	transport *transport.Transport
	// self is this node's raw Raft id.
	self []byte
	// voters returns the voters of Raft's configuration.
	voters func() []*raftlogv1.Member
	// full and slow report whether this node's disk is nearly full, or slow.
	full, slow func() bool
	// priority is this node's own; with 0 it shall lead only if no other voter can.
	priority uint32
	// ask pings a member.
	ask       func(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error)
	heartbeat time.Duration
	log       *slog.Logger
	// gone is the term of the newest leader that did not answer after its connections had
	// ended.
	gone atomic.Uint64
	// stood is the newest term after which this node stood for election. Only run uses it.
	stood uint64
}

// run follows the leader's connections until ctx ends.
func (l *leaderLoss) run(ctx context.Context) {
	for {
		select {
		case <-l.transport.Lost():
			l.check(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// check acts if the leader's connections have ended. It gives up when the heartbeat
// timeout takes over.
func (l *leaderLoss) check(ctx context.Context) {
	lost := l.transport.Contact()
	if !l.stillLost(lost) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.heartbeat)
	defer cancel()
	if l.answers(ctx, lost.Leader) {
		return
	}
	l.gone.Store(lost.Term)
	if lost.Term > l.stood && l.stands() {
		l.succeed(ctx, lost)
	}
}

// stillLost reports whether Raft here still follows the leader whose connections have
// ended.
func (l *leaderLoss) stillLost(lost transport.Contact) bool {
	now := l.transport.Contact()
	_, follows := l.raft.LeaderWithID()
	return lost.Term > 0 && !now.Connected && now.Term == lost.Term && now.Leader == lost.Leader &&
		follows == lost.Leader && l.raft.State() == raft.Follower && l.raft.CurrentTerm() == lost.Term
}

// answers reports whether the leader answers a new connection.
func (l *leaderLoss) answers(ctx context.Context, leader raft.ServerID) bool {
	ctx, cancel := context.WithTimeout(ctx, redialTimeout)
	defer cancel()
	answered, err := l.transport.Answers(ctx, leader)
	if !answered {
		l.log.Info("the leader's connections have ended, and it does not answer a new one", "leader", leader, "error", err)
	}
	return answered
}

// stands reports whether this node would stand for election. A node that leadership is
// not handed to does not take it in haste either: the heartbeat timeout elects it if no
// other voter can lead.
func (l *leaderLoss) stands() bool {
	return l.transport.MayStand() && l.priority > 0 && !l.full() && !l.slow() && l.votes()
}

// votes reports whether this node is a voter.
func (l *leaderLoss) votes() bool {
	return slices.ContainsFunc(l.voters(), func(m *raftlogv1.Member) bool { return bytes.Equal(m.GetId(), l.self) })
}

// contact returns this node's contact with the leader, for other voters; nil if there was
// none.
func (l *leaderLoss) contact() *peerv1.LeaderContact {
	c := l.transport.Contact()
	leader, err := member.ParseID(string(c.Leader))
	if c.Term == 0 || err != nil {
		return nil
	}
	return &peerv1.LeaderContact{
		Term: c.Term, Leader: leader[:], Connected: c.Connected, SilentMicros: uint64(max(0, time.Since(c.Heard)).Microseconds()),
		Gone: !c.Connected && l.gone.Load() == c.Term, LastIndex: l.raft.LastIndex(), Stands: l.stands(),
	}
}

// succeed asks the other voters until the evidence is complete, and stands for election
// when it is this node's turn. It ends when ctx does, or when Raft no longer follows the
// lost leader.
func (l *leaderLoss) succeed(ctx context.Context, lost transport.Contact) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	e := lossEvidence{term: lost.Term, heartbeat: l.heartbeat, self: string(l.self), voters: l.voters(), told: map[string]*peerv1.LeaderContact{}}
	contacts := make(chan toldContact)
	for _, m := range e.voters {
		if !bytes.Equal(m.GetId(), l.self) && member.ServerID(m.GetId()) != lost.Leader {
			asking.Go(func() { l.question(ctx, m, contacts) })
		}
	}
	began, tick := time.Now(), time.NewTicker(lossAskEvery)
	defer tick.Stop()
	for {
		select {
		case c := <-contacts:
			e.told[c.id] = c.contact
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !l.stillLost(lost) {
			return
		}
		e.told[e.self] = l.contact()
		before, ok := e.judge()
		if !ok || time.Since(began) < time.Duration(before)*standTurn {
			continue
		}
		l.log.Info("the leader is gone: this node stands for election", "leader", lost.Leader, "term", lost.Term, "after", time.Since(began))
		l.stood = lost.Term
		l.transport.Stand(ctx, lost.Term)
		return
	}
}

// toldContact is what a voter told of its contact with the leader.
type toldContact struct {
	id      string
	contact *peerv1.LeaderContact
}

// question asks a voter for its contact with the leader, again and again until ctx ends.
func (l *leaderLoss) question(ctx context.Context, m *raftlogv1.Member, to chan<- toldContact) {
	for ctx.Err() == nil {
		if reply, err := l.ask(ctx, m); err == nil {
			select {
			case to <- toldContact{string(m.GetId()), reply.GetLeaderContact()}:
			case <-ctx.Done():
			}
		}
		sleep(ctx, lossAskEvery)
	}
}

// lossEvidence is what the voters say of a leader that this node has lost.
type lossEvidence struct {
	term      uint64
	heartbeat time.Duration
	self      string
	voters    []*raftlogv1.Member
	// told has what each voter said last, by raw Raft id, this node included.
	told map[string]*peerv1.LeaderContact
}

// judge reports whether the leader is gone: no voter hears it, or knows a newer one, and a
// majority has lost it and dialled it in vain. before is how many voters stand before
// this node: those whose logs reach further, whose votes this node would not get, and of
// equal ones those with lower tags.
func (e lossEvidence) judge() (before int, gone bool) {
	lost, own := 0, e.voter(e.self)
	for _, m := range e.voters {
		switch v := e.voter(string(m.GetId())); {
		case v.GetTerm() > e.term, v.GetTerm() == e.term && e.hears(v.LeaderContact):
			return 0, false
		case v.GetTerm() < e.term || !v.GetGone():
		default:
			lost++
			if v.GetStands() && v.precedes(own) {
				before++
			}
		}
	}
	return before, lost > len(e.voters)/2
}

// hears reports whether a voter hears the leader.
func (e lossEvidence) hears(c *peerv1.LeaderContact) bool {
	return c.GetConnected() && time.Duration(c.GetSilentMicros())*time.Microsecond < e.heartbeat
}

func (e lossEvidence) voter(id string) lossVoter {
	i := slices.IndexFunc(e.voters, func(m *raftlogv1.Member) bool { return string(m.GetId()) == id })
	if i < 0 {
		return lossVoter{}
	}
	return lossVoter{e.told[id], e.voters[i].GetTag()}
}

// lossVoter is a voter and what it said last.
type lossVoter struct {
	*peerv1.LeaderContact
	tag string
}

// precedes reports whether a voter stands before another.
func (v lossVoter) precedes(other lossVoter) bool {
	if v.GetLastIndex() != other.GetLastIndex() {
		return v.GetLastIndex() > other.GetLastIndex()
	}
	return docid.CompareNodeTags(v.tag, other.tag) < 0
}
