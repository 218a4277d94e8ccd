package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
)

// told takes the state of a member that pinged this node.
func (p *memberPinger) told(id string, at apply.StateAt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard(id, at)
}

// heard takes a member's state and compares it at once: a busy node soon drops its own at
// that index. The caller holds the lock.
func (p *memberPinger) heard(id string, at apply.StateAt) {
	p.divergence.Heard(id, at)
	p.compare()
}

// compare compares the states of members with this node's, and reports those that begin
// to differ. The caller holds the lock.
func (p *memberPinger) compare() {
	for id, found := range p.divergence.Compare(time.Now(), p.states) {
		p.log.Error("another member's state differs from this node's", "member", p.tag(id),
			"index", found.Index, "own_hash", hashText(found.Own), "its_hash", hashText(found.Other))
		if p.onDivergence != nil {
			p.onDivergence()
		}
	}
}

// judgeState ends the node if its state is the wrong one. The others learn its state
// first, and raise the alarm.
func (p *memberPinger) judgeState(ctx context.Context) {
	p.mu.Lock()
	p.compare() // The node may have caught up with a waiting state.
	id, found, wrong := p.divergence.Against(time.Now(), string(p.record.id()), p.otherLeader(), p.configuration.voters())
	p.mu.Unlock()
	if wrong {
		p.askAll(ctx)
		p.record.diverged(fmt.Sprintf("at log entry %d the hash of its state is %s, that of node %s is %s",
			found.Index, hashText(found.Own), p.tag(id), hashText(found.Other)))
	}
}

// otherLeader returns the raw Raft id of the leader that Raft follows; empty if
// that is this node, or there is none.
func (p *memberPinger) otherLeader() string {
	_, name := p.raft.LeaderWithID()
	m, ok := p.roster.byServerID(string(name))
	if !ok || p.record.isSelf(m) || p.raft.State() == raft.Leader {
		return ""
	}
	return string(m.GetId())
}

func (p *memberPinger) tag(id string) string {
	m, _ := p.roster.byID([]byte(id))
	return m.GetTag()
}

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }
