package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// leaderPath tells whether the leader serves this node: a leader serves a node that it reaches, and
// whose pings and groups it answers. Callers' errors, the readiness, the status and the answers to
// members' pings have it from here.
type leaderPath struct {
	hint  *peers.Hint
	table *peers.Table
	// silence returns for how long a member has not answered pings; 0 if it answers.
	silence func(id []byte) time.Duration
	self    string
	// wait is how long groups must have been unanswered. Callers wait longer, so that they learn why.
	wait time.Duration

	groups groups
	// found is nil while the leader serves this node, and before the first look.
	found atomic.Pointer[unserved]
}

// unserved is why no leader serves a node.
type unserved struct {
	text string
	// silent is the leader that does not answer; nil if the reason is another. pinged means that it
	// does not answer pings either.
	silent *raftlogv1.Member
	pinged bool
}

func (u *unserved) Error() string { return u.text }

// look judges the path to the leader with this Raft name; an empty name means that none is known.
func (p *leaderPath) look(now time.Time, leader string) { p.found.Store(p.judge(now, leader)) }

func (p *leaderPath) judge(now time.Time, leader string) *unserved {
	if leader == p.self {
		return nil
	}
	m, known := p.table.ByServerID(leader)
	unheard := p.hint.Without(now)
	pings, unanswered := min(p.silence(m.GetId()), p.groups.sinceAnswer(now)), p.groups.unanswered(now, leader)
	switch pinged := pings >= peers.SilentAfter; {
	case !known && unheard >= outageGrace:
		return &unserved{text: fmt.Sprintf("no leader has been known for %v", unheard.Truncate(time.Second))}
	case !known:
		return nil
	case pinged, unanswered >= p.wait:
		return &unserved{fmt.Sprintf("%s has not answered for %v", named(m), max(pings, unanswered).Truncate(time.Second)), m, pinged}
	case unheard >= outageGrace:
		return &unserved{text: fmt.Sprintf("%s has not reached this node for %v", named(m), unheard.Truncate(time.Second))}
	}
	return nil
}

func named(leader *raftlogv1.Member) string {
	return fmt.Sprintf("the leader %s at %s", leader.GetTag(), leader.GetRaftAddress())
}

// err returns why no leader serves this node, or nil.
func (p *leaderPath) err() error {
	if u := p.found.Load(); u != nil {
		return u
	}
	return nil
}

// silent returns the leader if it does not answer this node, or nil.
func (p *leaderPath) silent() *raftlogv1.Member {
	if u := p.found.Load(); u != nil {
		return u.silent
	}
	return nil
}

// refusal returns the error of operations that need not be tried, or nil: only pings find out when
// the leader answers again. Where it answers these, groups do.
func (p *leaderPath) refusal() error {
	if u := p.found.Load(); u != nil && u.pinged {
		return u.refusal()
	}
	return nil
}

func (u *unserved) refusal() error {
	return outcome.NewNotApplied(outcome.LeaderUnreachable, errors.New(named(u.silent)+" does not answer this node"))
}

// explain replaces the error of an operation that no leader took, if the leader does not answer.
func (p *leaderPath) explain(err error) error {
	if outcome.Of(err) != outcome.NotApplied {
		return err
	}
	switch u := p.found.Load(); outcome.ReasonOf(err) {
	case outcome.NoQuorum, outcome.NotLeader, outcome.Deadline:
		if u != nil && u.silent != nil {
			return u.refusal()
		}
	}
	return err
}

// unanswered reports that the leader answers pings, and no groups.
func (p *leaderPath) unanswered() bool {
	u := p.found.Load()
	return u != nil && u.silent != nil && !u.pinged
}
