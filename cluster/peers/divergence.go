package peers

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
)

// TakeState takes the state of a member that pinged this node.
func (p *Pinger) TakeState(id string, at apply.StateAt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard(id, at)
}

// heard takes a member's state and compares it at once: a busy node soon drops its own at
// that index. The caller holds the lock.
func (p *Pinger) heard(id string, at apply.StateAt) {
	p.divergence.Heard(id, at)
	p.compare()
}

// compare compares the states of members with this node's, and reports those that begin
// to differ. The caller holds the lock.
func (p *Pinger) compare() {
	for id, found := range p.divergence.Compare(time.Now(), p.cfg.States) {
		p.cfg.Log.Error("another member's state differs from this node's", "member", p.tag(id),
			"index", found.Index, "own_hash", hashText(found.Own), "its_hash", hashText(found.Other))
		p.cfg.OnDivergence()
	}
}

// judgeState ends the node if its state is judged to be the diverging one. The others learn its
// state first, and raise the alarm.
func (p *Pinger) judgeState(ctx context.Context) {
	p.mu.Lock()
	p.compare() // The node may have caught up with a waiting state.
	id, found, wrong := p.divergence.Against(time.Now(), string(p.cfg.Record.ID()), p.otherLeader(), p.cfg.Configuration.Voters())
	p.mu.Unlock()
	if wrong {
		p.askAll(ctx)
		p.cfg.Record.EndDiverged(fmt.Sprintf("at log entry %d the hash of its state is %s, that of node %s is %s",
			found.Index, hashText(found.Own), p.tag(id), hashText(found.Other)))
	}
}

// otherLeader returns the raw Raft id of the leader that Raft follows; empty if that is this
// node, or if there is no leader.
func (p *Pinger) otherLeader() string {
	_, name := p.cfg.Raft.LeaderWithID()
	m, ok := p.cfg.Table.ByServerID(string(name))
	if !ok || p.cfg.Record.IsSelf(m) || p.cfg.Raft.State() == raft.Leader {
		return ""
	}
	return string(m.GetId())
}

func (p *Pinger) tag(id string) string {
	m, _ := p.cfg.Table.ByID([]byte(id))
	return m.GetTag()
}

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }
