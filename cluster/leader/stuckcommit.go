package leader

import (
	"time"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/transport"
)

const (
	// stuckCommitTick is how often a leader checks that its entries are acknowledged, and
	// maxMisses the number of consecutive failed checks after which it steps down: 2 s. Checks
	// are counted, not time, so that a pause of this process is one check.
	stuckCommitTick = 200 * time.Millisecond
	maxMisses       = 10
	// minBackoff is how long a leader that stepped down does not campaign if another leads.
	// Each repetition within backoffMemory doubles it, up to maxBackoff: a link that loses
	// large packets seldom recovers by itself.
	minBackoff    = 10 * time.Second
	MaxBackoff    = 80 * time.Second
	backoffMemory = 10 * time.Minute
	// OthersFirst is how long it never campaigns. The others need less than a second. If
	// none leads by then, perhaps none can be elected, because this node's log is longer
	// by the entries that did not get through. The same holds where another led and has
	// been silent for as long: only this node may have some entries.
	OthersFirst = 3 * time.Second
)

// stuckCommit detects a leader whose entries do not reach a quorum although its heartbeats
// do, as on a link that loses large packets. Its lease never ends, so it would lead
// permanently without committing anything.
type stuckCommit struct {
	commit uint64
	misses int
}

type commitSample struct {
	// commit is the commit index, last the index of the last log entry.
	commit, last uint64
	// missing means that too many voters have not answered entries since the last check:
	// the others are no quorum.
	missing bool
	// answered means that a quorum of voters without this node has answered heartbeats
	// since the last check. Fewer could not elect a leader: this node refuses its vote to
	// them, because its log is longer.
	answered bool
}

// observe reports whether the leader must step down. A follower that does not answer
// anything, as during a slow write, is no evidence, and cannot vote for another.
func (c *stuckCommit) observe(s commitSample) bool {
	switch {
	case s.commit != c.commit || s.last <= s.commit || !s.missing:
		c.commit, c.misses = s.commit, 0
	case s.answered:
		c.misses++
	}
	return c.misses >= maxMisses
}

// leaveStuckCommit makes this leader step down if its entries do not reach a quorum. The
// first check begins it.
func (l *Leadership) leaveStuckCommit() duty.Duty {
	var c stuckCommit
	var before transport.SendSeq
	begun, steppedDown := false, false
	term := l.cfg.Raft.CurrentTerm()
	check := func(now time.Time) duty.Task {
		if begun && !steppedDown && c.observe(l.sample(term, before)) {
			steppedDown = true
			d := l.backoff.next(now)
			l.cfg.Log.Warn("entries of this leader do not reach a quorum, although its heartbeats do: it steps down, and does not "+
				"campaign for a while", "term", term, "backoff", d)
			l.cfg.Transport.StepDown(term, OthersFirst, d)
		}
		begun, before = true, l.cfg.Transport.SendSeq()
		return nil
	}
	return duty.Duty{Name: "stuck commit", Every: stuckCommitTick, Check: check}
}

func (l *Leadership) sample(term uint64, before transport.SendSeq) commitSample {
	voters := l.cfg.Configuration.VoterNames()
	return commitSample{
		commit: l.cfg.Raft.CommitIndex(), last: l.cfg.Raft.LastIndex(),
		missing:  2*l.cfg.Transport.Unanswered(before, voters) >= len(voters),
		answered: l.cfg.Transport.OthersAnswered(before, term, voters),
	}
}

// campaignBackoff is how long this node did not campaign last, and when that began.
type campaignBackoff struct {
	last time.Duration
	at   time.Time
}

func (b *campaignBackoff) next(now time.Time) time.Duration {
	if now.Sub(b.at) > backoffMemory {
		b.last = 0
	}
	b.last, b.at = min(max(2*b.last, minBackoff), MaxBackoff), now
	return b.last
}
