package raftguard

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
)

const (
	// electionWrites is how many writes of a term or vote an election timeout must hold:
	// the candidate's two, and a voter's two.
	electionWrites = 4
	// voteWrites are a voter's.
	voteWrites = 2
	// termSyncs are those of one write of a term, a transaction of bbolt. A write of the log has one.
	termSyncs = 2
	// maxElectionTimeout bounds the timeout on a disk that takes ever longer.
	maxElectionTimeout = 16 * time.Second
	// transferWrites is how many writes a transfer's timeout must hold: those in progress on the
	// leader and the voter, and of the entries that have come meanwhile.
	transferWrites = 4
	// maxTransferTimeout bounds it: a leader refuses all calls meanwhile.
	maxTransferTimeout = 2500 * time.Millisecond
	// writesRemembered and gapsRemembered are for how long, up to twice as long, a write or a gap
	// counts: a disk is slow, or a machine busy, again and again.
	writesRemembered = time.Minute
	gapsRemembered   = 5 * time.Minute
	// A gap that is longer than between two heartbeats by a lateShare of the heartbeat timeout shows that
	// a process had to wait.
	lateShare = 10
	// The next delay may be so many times as long as the longest that was seen. A leader that steps
	// down costs an election, and one that does not costs little.
	followerPatience = 4
	leaderPatience   = 8
	// A gap of maxGap or more is no sign of a busy machine, but of one that stood still. maxExtra
	// bounds what is added to a timeout: calls in flight at a leader that is cut off wait for its lease.
	maxGap   = time.Second
	maxExtra = 600 * time.Millisecond
	// lookEvery is how often it is checked whether something is old.
	lookEvery = 10 * time.Second
	// An idle leader sends empty appends so seldom, up to twice as far apart.
	idleCommitTimeout = 250 * time.Millisecond
)

// HeartbeatShare is which part of the heartbeat timeout the library sends heartbeats apart at most, each
// after the answer to the one before.
const HeartbeatShare = 5

// Timeouts are Raft's. They follow what this node sees of disks and processors, and go back when it
// no longer does.
//
// Election: the library (v1.7.3, runCandidate) starts a candidate's timer before it has written its
// own term and vote. On disks that take 100 ms a write, each candidacy ended before its votes came,
// and a lost leader was never replaced. So the election timeout follows what a term takes to write
// here, and a vote at the voters. It bounds a leadership transfer too, so that is raised for each.
//
// Heartbeat and lease: on a busy machine a process waits for the processor for tenths of a second.
// An election costs more than that, and does not help. So a follower waits for its leader, and a
// leader for answers, for longer than the gaps that ended well, as heartbeats came again. A follower
// with more patience than others is safe: it campaigns later. So is a leader: each read asks a
// quorum, and only a cut-off leader knows of it later.
//
// Commit: the library sends an empty append to each follower whenever that has passed since the one
// before, so that it learns of a new commit index. Where nothing is written there is none, and these
// were half of what an idle cluster does. The library reads the timeout anew after each entry.
type Timeouts struct {
	heartbeat, lease, commit time.Duration
	// refusePreVotes has pre-votes refused for a term, for some time.
	refusePreVotes func(term uint64, d time.Duration)
	log            *slog.Logger

	// term is the newest that this node has entered, or enters.
	term atomic.Uint64

	mu sync.Mutex
	// writes are those of the log here, terms those of terms, and votes the times to a voter's answer.
	writes, terms, votes recent
	// leaderLate is by how much the leader's messages were late, and answersLate the answers to
	// this node as a leader.
	leaderLate, answersLate recent
	// leads means that this node leads, and transfer is the transfer's timeout, 0 if there is none.
	leads    bool
	transfer time.Duration
	// appended means that entries were written since the last look, and idle that there were none
	// between two.
	appended, idle bool
	// elections is the timeout that elections need, inForce what the library has.
	elections time.Duration
	inForce   timeouts
	// raft and roundTrip are unset until the library runs.
	raft      *raft.Raft
	roundTrip func(raft.ServerID) time.Duration
}

type timeouts struct{ heartbeat, election, lease, commit time.Duration }

// NewTimeouts returns Timeouts of heartbeat, lease and commit until something slow is known; the election
// timeout equals the heartbeat timeout.
func NewTimeouts(heartbeat, lease, commit time.Duration, refusePreVotes func(term uint64, d time.Duration), log *slog.Logger) *Timeouts {
	return &Timeouts{
		heartbeat: heartbeat, lease: lease, commit: commit, refusePreVotes: refusePreVotes, log: log,
		writes: recent{period: writesRemembered}, terms: recent{period: writesRemembered}, votes: recent{period: writesRemembered},
		leaderLate: recent{period: gapsRemembered}, answersLate: recent{period: gapsRemembered},
		elections: heartbeat, inForce: timeouts{heartbeat, heartbeat, lease, commit},
	}
}

// EnterTerm is called before a new term is written, and the returned function afterwards.
func (t *Timeouts) EnterTerm(term uint64) (entered func()) {
	begin := time.Now()
	t.term.Store(term)
	t.refusePreVotes(term, maxElectionTimeout)
	return func() {
		t.TermWritten(time.Since(begin))
		t.refusePreVotes(term, t.Election())
	}
}

// TermWritten records how long a write of a term, or of the same size, took.
func (t *Timeouts) TermWritten(took time.Duration) { t.record(&t.terms, took) }

// VoteAnswered records how long a voter took to answer a request for its vote.
func (t *Timeouts) VoteAnswered(took time.Duration) { t.record(&t.votes, took) }

// LeaderHeard records for how long the leader of a term that sent something had been silent. It is quick.
// A leader of an older term than this node's has been replaced: it stood still, and no wait was worth it.
func (t *Timeouts) LeaderHeard(leader raft.ServerID, term uint64, gap time.Duration) {
	if term >= t.term.Load() {
		t.recordGap(&t.leaderLate, leader, gap)
	}
}

// AnswerHeard records for how long no member had answered this node as a leader. It is quick.
func (t *Timeouts) AnswerHeard(member raft.ServerID, gap time.Duration) {
	t.recordGap(&t.answersLate, member, gap)
}

func (t *Timeouts) recordGap(to *recent, peer raft.ServerID, gap time.Duration) {
	late := gap - t.heartbeat/HeartbeatShare
	if late <= t.heartbeat/lateShare || gap >= maxGap || !t.runs() {
		return
	}
	if late -= t.roundTrip(peer); late > t.heartbeat/lateShare {
		t.record(to, late)
	}
}

func (t *Timeouts) runs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raft != nil
}

func (t *Timeouts) record(to *recent, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to.add(time.Now(), d)
	t.follow()
}

// Wrote records how long a write of the log took. It is quick.
func (t *Timeouts) Wrote(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes.add(time.Now(), took)
}

// Appending is called before entries are written, and thus before they are sent.
func (t *Timeouts) Appending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appended = true
	if t.idle {
		t.idle = false
		t.follow()
	}
}

// Leads records whether this node leads. A leader's heartbeat timeout is as configured, because it
// decides how often the library sends heartbeats.
func (t *Timeouts) Leads(leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leads = leads
	t.follow()
}

// RaiseForTransfer has the election timeout hold the writes of a leadership transfer until lower is
// called, and returns what the transfer has got.
func (t *Timeouts) RaiseForTransfer() (limit time.Duration, lower func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.transfer = t.transferNeeds()
	t.follow()
	return t.inForce.election, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.transfer = 0
		t.follow()
	}
}

// TransferNeeds is how long a transfer needs, by the writes that are known.
func (t *Timeouts) TransferNeeds() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.transferNeeds()
}

func (t *Timeouts) transferNeeds() time.Duration {
	return min(transferWrites*t.writes.longest(time.Now()), maxTransferTimeout)
}

// Duty forgets what is old, and finds that nothing is written.
func (t *Timeouts) Duty() duty.Duty {
	return duty.Duty{Name: "timeouts", Every: lookEvery, Check: func(time.Time) duty.Task {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.idle, t.appended = !t.appended, false
		t.follow()
		return nil
	}}
}

// Started tells that the library runs, and how to learn about how long a member's answers take on
// their way; 0 if that is not known.
func (t *Timeouts) Started(r *raft.Raft, roundTrip func(raft.ServerID) time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raft, t.roundTrip = r, roundTrip
	t.reload(t.inForce)
}

// Election is the election timeout.
func (t *Timeouts) Election() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inForce.election
}

// Extra is how much longer than on a quiet machine a leader may be silent before it is asked whether it
// lives: as long as was seen, and no longer than the heartbeat timeout. A question too early costs
// nothing where the leader, or a voter that hears it, answers.
func (t *Timeouts) Extra() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.leaderLate.longest(time.Now()), t.heartbeat)
}

func (t *Timeouts) extra(now time.Time) time.Duration {
	return min(followerPatience*t.leaderLate.longest(now), maxExtra)
}

// follow sets the timeouts that are needed now. The caller holds mu.
func (t *Timeouts) follow() {
	now := time.Now()
	write := max(t.terms.longest(now), t.votes.longest(now)/voteWrites, termSyncs*t.writes.shortest(now))
	if elections := t.after(write); elections != t.elections {
		t.log.Warn("the election timeout follows the time that a term and a vote take to write", "write", write, "election_timeout", elections)
		t.elections = elections
	}
	// Where nothing is written heartbeats alone find that a connection is lost, and make another, so much later.
	interval := t.heartbeat / HeartbeatShare
	next := timeouts{t.heartbeat + t.extra(now), t.elections, t.lease, t.commit}
	if t.idle {
		next.commit = max(t.commit, idleCommitTimeout)
	}
	if t.leads {
		more := min(leaderPatience*max(t.leaderLate.longest(now), t.answersLate.longest(now)), maxExtra)
		if t.idle {
			more = max(more, interval)
		}
		next.heartbeat, next.lease = t.heartbeat, t.lease+more
	}
	next.election = max(next.election, next.heartbeat, t.transfer)
	if next == t.inForce {
		return
	}
	if next.heartbeat > t.inForce.heartbeat || next.lease > t.inForce.lease+interval {
		t.log.Info("heartbeats come late: this node waits for longer", "heartbeat_timeout", next.heartbeat, "lease", next.lease)
	}
	before := t.inForce
	t.inForce = next
	t.reload(before)
}

// reload has Raft use the timeouts. ReloadConfig alone wakes what waits for a longer heartbeat timeout
// than there is now; it takes no raised lease, which a node that becomes a leader, or is on a quiet
// machine again, does without for that moment. The caller holds mu.
func (t *Timeouts) reload(before timeouts) {
	if t.raft == nil {
		return
	}
	if t.inForce.heartbeat < before.heartbeat {
		before.lease = t.lease
		setTimeouts(t.raft, before)
		config := t.raft.ReloadableConfig()
		config.HeartbeatTimeout, config.ElectionTimeout = t.inForce.heartbeat, t.inForce.election
		if err := t.raft.ReloadConfig(config); err != nil {
			t.log.Warn("Raft is not told of a shorter heartbeat timeout", "error", err)
		}
	}
	setTimeouts(t.raft, t.inForce)
}

// after returns the election timeout after a write: as long as the write needs, or the present one if
// that is enough and less than twice as long.
func (t *Timeouts) after(took time.Duration) time.Duration {
	need := max(t.heartbeat, min(electionWrites*took, maxElectionTimeout))
	if need <= t.elections && t.elections < 2*need {
		return t.elections
	}
	return need
}
