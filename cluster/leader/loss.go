package leader

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// The time, and the number of round trips, that a lost leader has to answer a new
	// connection: TCP, TLS and the greeting take one round trip each. A process that is gone is
	// refused at once; a machine that is gone does not answer at all.
	redialTimeout    = 50 * time.Millisecond
	redialRoundTrips = 4
	// A leader is silent after so many of the longest intervals: it has missed a heartbeat.
	silentIntervals = 2
	// A leader that was lost is looked at so many times in a heartbeat timeout. A look that is late by
	// pausedChecks of these shows that the process was paused, and could not hear the leader.
	silenceChecks = 20
	pausedChecks  = 3
	// lossAskEvery is the pause between calls to a voter, which may notice the loss slightly
	// later than this node.
	lossAskEvery = 2 * time.Millisecond
	// campaignTurn is how long a voter has to campaign before the next voter does, beyond two
	// of the slowest answers: the first voter may complete its evidence an answer later, and
	// its answer that it campaigns takes another. On a busy machine both take tens of
	// milliseconds.
	campaignTurn = 100 * time.Millisecond
)

// Loss campaigns at once when the leader is lost. Raft's heartbeat timeout would do the same
// later: it is random, and each voter waits for its own. So Loss only saves time, and it is
// careful: a live leader must not be deposed.
//
// The evidence: all connections from the leader have ended, or it was silent for longer than
// between any two heartbeats; it does not answer a new connection, and a majority of the
// voters, this one included, has the same evidence of the same leader in the same term. Such a
// leader has no quorum left. Voters with more entries campaign first, then those without slow disks, and no
// voter campaigns once it hears of another candidate, so that no two split the votes.
type Loss struct {
	Raft      *raft.Raft
	Transport *transport.Transport
	Self      []byte
	Voters    func() []*raftlogv1.Member
	// Full and slow report whether this node's disk is nearly full, or slow.
	Full, Slow func() bool
	// Priority is this node's own; with 0 it leads only if no other voter can.
	Priority uint32
	Ask      func(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error)
	// RoundTrip returns about how long a member's answers to pings take, by raw Raft id; 0
	// if there was none.
	RoundTrip        func(id []byte) time.Duration
	Heartbeat, Lease time.Duration
	// Extra is how much longer than on a quiet machine a leader may be silent now.
	Extra func() time.Duration
	// Disconnected is called when the last connection from a member was closed by that member.
	Disconnected func()
	Log          *slog.Logger

	// gone is the contact with the newest leader that was lost and did not answer, nil if
	// none.
	gone atomic.Pointer[transport.Contact]
	// campaigned is the newest term after which this node campaigned early.
	campaigned atomic.Uint64
	// awake is since when this process has run without a pause; nil is since its start. While
	// paused it could not hear the leader.
	awake atomic.Pointer[time.Time]
}

// Run follows the leader's connections and requests until ctx ends.
func (l *Loss) Run(ctx context.Context) {
	lost, step := l.Transport.Lost(), l.Heartbeat/silenceChecks
	for {
		due := time.Now().Add(max(step, l.rest()))
		timer := time.NewTimer(time.Until(due))
		select {
		case <-lost:
			l.Disconnected()
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		if now := time.Now(); now.Sub(due) > pausedChecks*step {
			l.awake.Store(&now)
		}
		l.check(ctx)
	}
}

// rest is how long there is nothing to look at: until the leader that is heard now would be silent, or
// for some time where this node leads or follows none. It is not positive while a leader is lost.
func (l *Loss) rest() time.Duration {
	c := l.Transport.Contact()
	switch {
	case l.Raft.State() == raft.Leader:
		return l.Heartbeat
	case l.lost(c) && !l.stillLost(c):
		return l.Heartbeat / raftguard.HeartbeatShare
	}
	if !c.Connected {
		return 0
	}
	return l.silenceLimit(c.Leader) - l.silence(c)
}

// check acts if the leader is lost. It gives up when the heartbeat timeout takes over.
func (l *Loss) check(ctx context.Context) {
	lost := l.Transport.Contact()
	if !l.stillLost(lost) || !l.votes() {
		return
	}
	if !l.dialFailed(lost) {
		answers, err := l.answers(ctx, lost.Leader)
		if answers || ctx.Err() != nil {
			return
		}
		if before := l.gone.Swap(&lost); before == nil || before.Term != lost.Term {
			l.Log.Info("the leader is lost, and does not answer a new connection", "leader", lost.Leader, "error", err)
		}
	}
	if lost.Term > l.campaigned.Load() && l.canCampaign() {
		ctx, cancel := context.WithTimeout(ctx, l.Heartbeat)
		defer cancel()
		l.campaign(ctx, lost)
	}
}

// stillLost reports whether Raft here still follows a leader that is lost, and nothing of
// it has arrived since.
func (l *Loss) stillLost(lost transport.Contact) bool {
	now := l.Transport.Contact()
	_, follows := l.Raft.LeaderWithID()
	return lost.Term > 0 && l.lost(now) && now == lost &&
		follows == lost.Leader && l.Raft.State() == raft.Follower && l.Raft.CurrentTerm() == lost.Term
}

// lost reports whether a leader has no connection to this node, or was silent for too long.
// Over a bad link that happens to a live leader too; it answers a new connection.
func (l *Loss) lost(c transport.Contact) bool {
	return !c.Connected || l.silence(c) >= l.silenceLimit(c.Leader)
}

// silence is how long this process has listened since the leader sent something.
func (l *Loss) silence(c transport.Contact) time.Duration {
	since := c.Heard
	if awake := l.awake.Load(); awake != nil && awake.After(since) {
		since = *awake
	}
	return max(0, time.Since(since))
}

// silenceLimit is how long a leader that lives may be silent: several times the longest pause
// between two heartbeats, of which the answer to the first is a part, but at most its lease, after
// which it soon does not lead on by itself; and longer where heartbeats were late.
func (l *Loss) silenceLimit(leader raft.ServerID) time.Duration {
	return min(l.Lease, silentIntervals*(l.Heartbeat/raftguard.HeartbeatShare+l.RoundTripTo(leader))) + l.Extra()
}

// RoundTripTo returns about how long a member's answers to pings take; 0 if there was none.
func (l *Loss) RoundTripTo(server raft.ServerID) time.Duration {
	id, err := nodeid.Parse(string(server))
	if err != nil {
		return 0
	}
	return l.RoundTrip(id[:])
}

// dialFailed reports whether a dial to the leader has failed since it was heard last.
func (l *Loss) dialFailed(c transport.Contact) bool {
	gone := l.gone.Load()
	return gone != nil && gone.Term == c.Term && gone.Heard.Equal(c.Heard)
}

func (l *Loss) answers(ctx context.Context, leader raft.ServerID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(redialTimeout, redialRoundTrips*l.RoundTripTo(leader)))
	defer cancel()
	return l.Transport.Answers(ctx, leader)
}

// canCampaign reports whether this node may campaign before its heartbeat timeout. A node that
// is no transfer target does not: the heartbeat timeout elects it if no other voter can lead.
func (l *Loss) canCampaign() bool {
	return l.Raft.State() == raft.Follower && l.Transport.CanCampaign() && l.Priority > 0 && !l.Full() && l.votes()
}

func (l *Loss) votes() bool {
	return slices.ContainsFunc(l.Voters(), func(m *raftlogv1.Member) bool { return bytes.Equal(m.GetId(), l.Self) })
}

// Contact returns this node's contact with the leader, for other voters; nil if there was
// none.
func (l *Loss) Contact() *peerv1.LeaderContact {
	c := l.Transport.Contact()
	leader, err := nodeid.Parse(string(c.Leader))
	if c.Term == 0 || err != nil {
		return nil
	}
	return &peerv1.LeaderContact{
		Term: c.Term, Leader: leader[:], Connected: c.Connected, SilentMicros: uint64(max(0, time.Since(c.Heard)).Microseconds()),
		Gone: l.lost(c) && l.dialFailed(c), LastIndex: l.Raft.LastIndex(), CanCampaign: l.canCampaign(),
		Campaigned: l.campaigned.Load() == c.Term && l.lost(c), Slow: l.Slow(),
	}
}

// campaign polls the other voters until the evidence is complete, and has Raft campaign when
// it is this node's turn. It ends when ctx does, or when Raft no longer follows the lost
// leader.
func (l *Loss) campaign(ctx context.Context, lost transport.Contact) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	e := lossEvidence{
		term: lost.Term, silenceLimit: l.silenceLimit(lost.Leader), self: string(l.Self), voters: l.Voters(),
		replies: map[string]*peerv1.LeaderContact{},
	}
	contacts, asked := make(chan polledContact), 0
	for _, m := range e.voters {
		if !bytes.Equal(m.GetId(), l.Self) && member.ServerID(m.GetId()) != lost.Leader {
			asked++
			asking.Go(func() { l.poll(ctx, m, contacts) })
		}
	}
	began, tick := time.Now(), time.NewTicker(lossAskEvery)
	defer tick.Stop()
	var complete time.Time // since when the evidence is
	var slowest time.Duration
	for {
		select {
		case c := <-contacts:
			e.replies[c.id], slowest = c.contact, max(slowest, c.took)
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !l.stillLost(lost) {
			return
		}
		e.replies[e.self] = l.Contact()
		before, ok := e.tally()
		if !ok {
			complete = time.Time{}
			continue
		}
		if complete.IsZero() {
			complete = time.Now()
		}
		wait := time.Duration(before) * (campaignTurn + 2*slowest)
		if len(e.replies) <= asked {
			// Who has not answered yet may be before this node: their answers take about as long.
			wait += lossAskEvery + slowest/4
		}
		if time.Since(complete) < wait {
			continue
		}
		l.campaigned.Store(lost.Term)
		l.Transport.Campaign(ctx, lost.Term)
		// Not before: the log may block, and Raft be a leader by then.
		l.Log.Info("the leader is gone: this node campaigns", "leader", lost.Leader, "term", lost.Term, "after", time.Since(began))
		return
	}
}

type polledContact struct {
	id      string
	contact *peerv1.LeaderContact
	took    time.Duration
}

func (l *Loss) poll(ctx context.Context, m *raftlogv1.Member, to chan<- polledContact) {
	for ctx.Err() == nil {
		asked := time.Now()
		if reply, err := l.Ask(ctx, m); err == nil {
			select {
			case to <- polledContact{string(m.GetId()), reply.GetLeaderContact(), time.Since(asked)}:
			case <-ctx.Done():
			}
		}
		pause.For(ctx, lossAskEvery)
	}
}

// lossEvidence is what the voters say of a leader that this node has lost.
type lossEvidence struct {
	term         uint64
	silenceLimit time.Duration
	self         string
	voters       []*raftlogv1.Member
	// replies are the voters' newest, by raw Raft id, this node's included.
	replies map[string]*peerv1.LeaderContact
}

// tally reports whether a voter must campaign: no voter hears the leader, knows a newer leader
// or campaigns already, and a majority has lost the leader and could not dial it. A candidate
// may need longer than its turn, because it writes the new term first. before is the number of
// voters that campaign before this node: those with longer logs, which do not vote for a
// shorter log of the same last term, of equal logs those whose disks are not slow, and then those with lower
// tags. Where a machine's disk is slow for a moment, so are those of all voters on it, and one of them must lead.
func (e lossEvidence) tally() (before int, complete bool) {
	lost, own := 0, e.voter(e.self)
	for _, m := range e.voters {
		switch v := e.voter(string(m.GetId())); {
		case v.GetTerm() > e.term, v.GetTerm() == e.term && (v.GetCampaigned() || e.hears(v.LeaderContact)):
			return 0, false
		case v.GetTerm() < e.term || !v.GetGone():
		default:
			lost++
			if v.GetCanCampaign() && v.ranksAbove(own) {
				before++
			}
		}
	}
	return before, lost > len(e.voters)/2
}

func (e lossEvidence) hears(c *peerv1.LeaderContact) bool {
	return c.GetConnected() && time.Duration(c.GetSilentMicros())*time.Microsecond < e.silenceLimit
}

func (e lossEvidence) voter(id string) lossVoter {
	i := slices.IndexFunc(e.voters, func(m *raftlogv1.Member) bool { return string(m.GetId()) == id })
	if i < 0 {
		return lossVoter{}
	}
	return lossVoter{e.replies[id], e.voters[i].GetTag()}
}

type lossVoter struct {
	*peerv1.LeaderContact
	tag string
}

// ranksAbove reports whether a voter campaigns before another.
func (v lossVoter) ranksAbove(other lossVoter) bool {
	if v.GetLastIndex() != other.GetLastIndex() {
		return v.GetLastIndex() > other.GetLastIndex()
	}
	if v.GetSlow() != other.GetSlow() {
		return other.GetSlow()
	}
	return docid.CompareNodeTags(v.tag, other.tag) < 0
}
