package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/transport"
)

const (
	// progressTick is how often a leader checks that its entries get through, and
	// stuckLooks the number of failed checks in a row after which it resigns: 2 s. Checks
	// are counted, not time, so that a pause of this process is one check.
	progressTick = 200 * time.Millisecond
	stuckLooks   = 10
	// minAbstain is for how long a leader that resigned does not stand for election if
	// another leads. Each repetition within abstainMemory doubles it, up to maxAbstain: a
	// link that loses large packets seldom recovers by itself.
	minAbstain    = 10 * time.Second
	maxAbstain    = 80 * time.Second
	abstainMemory = 10 * time.Minute
	// othersFirst is for how long it never stands. The others need less than a second. If
	// none leads by then, perhaps none can be elected, because this node's log is longer
	// by the entries that did not get through. The same holds where another led and has
	// been silent for as long: only this node may have some entries.
	othersFirst = 3 * time.Second
)

// progress notices a leader whose entries do not reach a quorum although its heartbeats
// do, as on a link that loses large packets. Its lease never ends, so it would lead
// permanently without committing anything.
type progress struct {
	commit uint64
	looks  int
}

// glance is what one look shows.
type glance struct {
	// commit is the commit index, last the last one in the log.
	commit, last uint64
	// missing means that too many voters have not answered entries since the last check:
	// the others are no quorum.
	missing bool
	// answered means that a quorum of voters without this node has answered heartbeats
	// since the last check. Fewer could not elect a leader: this node refuses its vote to
	// them, because its log is longer.
	answered bool
}

// look reports whether the leader must resign. A follower that does not answer anything,
// as during a slow write, is no evidence, and cannot vote for another.
func (p *progress) look(g glance) bool {
	switch {
	case g.commit != p.commit || g.last <= g.commit || !g.missing:
		p.commit, p.looks = g.commit, 0
	case g.answered:
		p.looks++
	}
	return p.looks >= stuckLooks
}

// progressWatch makes a leader resign whose entries do not reach a quorum.
type progressWatch struct {
	raft          *raft.Raft
	transport     *transport.Transport
	configuration configuration
	log           *slog.Logger
	// abstention belongs to the current leadership's work.
	abstention abstention
}

// watch looks until ctx or the leadership ends.
func (w *progressWatch) watch(ctx context.Context) {
	var p progress
	term, before := w.raft.CurrentTerm(), w.transport.Mark()
	for {
		sleep(ctx, progressTick)
		if ctx.Err() != nil || w.raft.State() != raft.Leader {
			return
		}
		voters := w.configuration.voterNames()
		g := glance{
			commit: w.raft.CommitIndex(), last: w.raft.LastIndex(),
			missing:  2*w.transport.Unanswered(before, voters) >= len(voters),
			answered: w.transport.OthersAnswered(before, term, voters),
		}
		before = w.transport.Mark()
		if p.look(g) {
			w.resign(term)
			return
		}
	}
}

// resign ends this node's leadership.
func (w *progressWatch) resign(term uint64) {
	d := w.abstention.next(time.Now())
	w.log.Warn("entries of this leader do not reach a quorum, although its heartbeats do: it resigns, and does not stand for election for a while",
		"term", term, "abstains", d)
	w.transport.Resign(term, othersFirst, d)
}

// abstention is for how long this node abstained last, and when it began.
type abstention struct {
	last time.Duration
	at   time.Time
}

func (a *abstention) next(now time.Time) time.Duration {
	if now.Sub(a.at) > abstainMemory {
		a.last = 0
	}
	a.last, a.at = min(max(2*a.last, minAbstain), maxAbstain), now
	return a.last
}
