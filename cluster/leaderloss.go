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
	// A leader that is lost has so long, and so many round trips, to answer a new
	// connection: TCP, TLS and the greeting take one each. A process that is gone is
	// refused at once; a machine that is gone does not answer at all.
	redialTimeout    = 50 * time.Millisecond
	redialRoundTrips = 4
	// silenceLooks is how often in a lease a follower looks whether the leader is silent.
	silenceLooks = 8
	// lossAskEvery is the pause between questions to one voter: it may notice the loss a
	// moment later than this node.
	lossAskEvery = 2 * time.Millisecond
	// standTurn is how long a voter has to stand for election before the next one does,
	// beyond two of the slowest answers: the first one may complete its evidence an answer
	// later, and its word that it stands takes another. On a busy machine both take tens
	// of milliseconds.
	standTurn = 100 * time.Millisecond
)

// leaderLoss begins an election at once when the leader is lost. Raft's heartbeat timeout
// would do the same later: it is drawn anew each time, and each voter waits for its own. So
// this only saves time, and it is careful: a leader that lives must not be deposed.
//
// The evidence: all connections from the leader have ended, or it was silent for its whole
// lease, after which it soon does not lead on either; it does not answer a new connection,
// and a majority of the voters, this one included, says the same of the same leader in
// the same term. No quorum is left to such a leader. Those with more entries stand first,
// and none does once it hears of another, so that no two split the votes.
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
	ask func(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error)
	// roundTrip returns about how long a member's answers to pings take, by raw Raft id; 0
	// if there was none.
	roundTrip        func(id []byte) time.Duration
	heartbeat, lease time.Duration
	log              *slog.Logger
	// gone is the contact with the newest leader that was lost and did not answer, nil if
	// none.
	gone atomic.Pointer[transport.Contact]
	// stood is the newest term after which this node stood for election.
	stood atomic.Uint64
}

// run follows the leader's connections and requests until ctx ends.
func (l *leaderLoss) run(ctx context.Context) {
	look := time.NewTicker(l.lease / silenceLooks)
	defer look.Stop()
	for {
		select {
		case <-l.transport.Lost():
		case <-look.C:
		case <-ctx.Done():
			return
		}
		l.check(ctx)
	}
}

// check acts if the leader is lost. It gives up when the heartbeat timeout takes over.
func (l *leaderLoss) check(ctx context.Context) {
	lost := l.transport.Contact()
	if !l.stillLost(lost) || !l.votes() {
		return
	}
	if !l.dialled(lost) {
		answers, err := l.answers(ctx, lost.Leader)
		if answers || ctx.Err() != nil {
			return
		}
		if before := l.gone.Swap(&lost); before == nil || before.Term != lost.Term {
			l.log.Info("the leader is lost, and does not answer a new connection", "leader", lost.Leader, "error", err)
		}
	}
	if lost.Term > l.stood.Load() && l.stands() {
		ctx, cancel := context.WithTimeout(ctx, l.heartbeat)
		defer cancel()
		l.succeed(ctx, lost)
	}
}

// stillLost reports whether Raft here still follows a leader that is lost, and nothing of
// it has arrived since.
func (l *leaderLoss) stillLost(lost transport.Contact) bool {
	now := l.transport.Contact()
	_, follows := l.raft.LeaderWithID()
	return lost.Term > 0 && l.lost(now) && now == lost &&
		follows == lost.Leader && l.raft.State() == raft.Follower && l.raft.CurrentTerm() == lost.Term
}

// lost reports whether a leader has no connection to this node, or was silent for its whole
// lease. With a lease of less than a fifth of the heartbeat timeout that happens to one that
// lives; it answers a new connection.
func (l *leaderLoss) lost(c transport.Contact) bool {
	return !c.Connected || time.Since(c.Heard) >= l.lease
}

// dialled reports whether a leader was dialled in vain since it was heard last.
func (l *leaderLoss) dialled(c transport.Contact) bool {
	gone := l.gone.Load()
	return gone != nil && gone.Term == c.Term && gone.Heard.Equal(c.Heard)
}

// answers reports whether the leader answers a new connection; the error says why not.
func (l *leaderLoss) answers(ctx context.Context, leader raft.ServerID) (bool, error) {
	timeout := redialTimeout
	if id, err := member.ParseID(string(leader)); err == nil {
		timeout = max(timeout, redialRoundTrips*l.roundTrip(id[:]))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return l.transport.Answers(ctx, leader)
}

// stands reports whether this node would stand for election. One whose own timeout is
// over stands already, as Raft has it. A node that leadership is
// not handed to does not take it in haste either: the heartbeat timeout elects it if no
// other voter can lead.
func (l *leaderLoss) stands() bool {
	return l.raft.State() == raft.Follower && l.transport.MayStand() && l.priority > 0 && !l.full() && !l.slow() && l.votes()
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
		Gone: l.lost(c) && l.dialled(c), LastIndex: l.raft.LastIndex(), Stands: l.stands(),
		Stood: l.stood.Load() == c.Term && l.lost(c),
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
	e := lossEvidence{term: lost.Term, lease: l.lease, self: string(l.self), voters: l.voters(), told: map[string]*peerv1.LeaderContact{}}
	contacts := make(chan toldContact)
	for _, m := range e.voters {
		if !bytes.Equal(m.GetId(), l.self) && member.ServerID(m.GetId()) != lost.Leader {
			asking.Go(func() { l.question(ctx, m, contacts) })
		}
	}
	began, tick := time.Now(), time.NewTicker(lossAskEvery)
	defer tick.Stop()
	var vacant time.Time // since when the evidence is complete
	var slowest time.Duration
	for {
		select {
		case c := <-contacts:
			e.told[c.id], slowest = c.contact, max(slowest, c.took)
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !l.stillLost(lost) {
			return
		}
		e.told[e.self] = l.contact()
		before, ok := e.judge()
		if !ok {
			vacant = time.Time{}
			continue
		}
		if vacant.IsZero() {
			vacant = time.Now()
		}
		if time.Since(vacant) < time.Duration(before)*(standTurn+2*slowest) {
			continue
		}
		l.stood.Store(lost.Term)
		l.transport.Stand(ctx, lost.Term)
		// Not before: the log may block, and Raft be a leader by then.
		l.log.Info("the leader is gone: this node stands for election", "leader", lost.Leader, "term", lost.Term, "after", time.Since(began))
		return
	}
}

// toldContact is what a voter told of its contact with the leader.
type toldContact struct {
	id      string
	contact *peerv1.LeaderContact
	// took is how long the answer took.
	took time.Duration
}

// question asks a voter for its contact with the leader, again and again until ctx ends.
func (l *leaderLoss) question(ctx context.Context, m *raftlogv1.Member, to chan<- toldContact) {
	for ctx.Err() == nil {
		asked := time.Now()
		if reply, err := l.ask(ctx, m); err == nil {
			select {
			case to <- toldContact{string(m.GetId()), reply.GetLeaderContact(), time.Since(asked)}:
			case <-ctx.Done():
			}
		}
		sleep(ctx, lossAskEvery)
	}
}

// lossEvidence is what the voters say of a leader that this node has lost.
type lossEvidence struct {
	term   uint64
	lease  time.Duration
	self   string
	voters []*raftlogv1.Member
	// told has what each voter said last, by raw Raft id, this node included.
	told map[string]*peerv1.LeaderContact
}

// judge reports whether somebody must stand for election: no voter hears the leader, knows
// a newer one or stands already, and a majority has lost the leader and dialled it in vain.
// A candidate may need longer than its turn, because it writes the new term first. before
// is how many voters stand before this node: those whose logs reach further, which do not
// vote for a shorter log of the same last term, and of equal ones those with lower tags.
func (e lossEvidence) judge() (before int, vacant bool) {
	lost, own := 0, e.voter(e.self)
	for _, m := range e.voters {
		switch v := e.voter(string(m.GetId())); {
		case v.GetTerm() > e.term, v.GetTerm() == e.term && (v.GetStood() || e.hears(v.LeaderContact)):
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
	return c.GetConnected() && time.Duration(c.GetSilentMicros())*time.Microsecond < e.lease
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
