package cluster

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/quorum"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// memberPingEvery is the interval between pings of each member, memberPingTimeout the
	// time it has to answer.
	memberPingEvery   = time.Second
	memberPingTimeout = 900 * time.Millisecond
	// startPingEvery is the interval in the first startPings of a process, as long as a
	// member does not answer. At a first start the nodes come up one after another, and an
	// operator who asks then must not see as silent what has answered since.
	startPingEvery = 100 * time.Millisecond
	startPings     = 10 * time.Second
)

// memberPinger pings the other members. It keeps their answers for the status, whether a
// quorum of disks is nearly full, and whether their states equal this node's.
type memberPinger struct {
	*pings
	raft          *raft.Raft
	configuration configuration
	quorum        *quorum.Monitor
	space         *space
	// condition is this node's own answer to a ping.
	condition func() *peerv1.PingResponse
	// onDivergence is called for each member whose state begins to differ; it may be nil.
	onDivergence func()

	mu      sync.Mutex
	replies map[string]*peerv1.PingResponse
	// commits are this node's commit index when each reply came.
	commits map[string]uint64
	// took is how long each member's newest answer took, and at most twice as long as the
	// one before: a busy machine answers late now and then, which makes no way longer.
	took map[string]time.Duration
	// silent has, for each member that does not answer, the time of the first unanswered
	// ping.
	silent map[string]time.Time
	// pinged is when a member last pinged this node, or when the node began.
	pinged     time.Time
	divergence *apply.Divergence
	// newest is the newest round; nil before the first has ended.
	newest atomic.Pointer[round]
}

// round is the answers of this node and the members to pings of the same time: their
// indexes can be compared.
type round struct {
	at time.Time
	// replies are by raw Raft id.
	replies map[string]*peerv1.PingResponse
	// differing are the members whose state was another than this node's.
	differing map[string]bool
}

// newMemberPinger returns p, which has what it needs, with no answers yet.
func newMemberPinger(p *memberPinger) *memberPinger {
	p.replies, p.silent, p.divergence = map[string]*peerv1.PingResponse{}, map[string]time.Time{}, apply.NewDivergence()
	p.commits, p.took, p.pinged = map[string]uint64{}, map[string]time.Duration{}, time.Now()
	return p
}

// run pings all members periodically, until ctx ends.
func (p *memberPinger) run(ctx context.Context) {
	began := time.Now()
	for ctx.Err() == nil {
		p.space.look()
		p.askAll(ctx)
		p.space.others.Store(p.quorumFull())
		p.judgeState(ctx)
		sleep(ctx, p.interval(time.Since(began)))
	}
}

// interval returns the pause before the next pings of a process of this age.
func (p *memberPinger) interval(age time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age < startPings && len(p.silent) > 0 {
		return startPingEvery
	}
	return memberPingEvery
}

// askAll pings all other members at the same time.
func (p *memberPinger) askAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, memberPingTimeout)
	defer cancel()
	began, own := time.Now(), p.condition()
	defer func() { p.newest.Store(p.round(began, own)) }()
	var wg sync.WaitGroup
	for _, m := range p.roster.refresh().members {
		if p.configuration.left(m) || p.record.isSelf(m) {
			continue
		}
		wg.Go(func() {
			sent := time.Now()
			reply, err := p.pings.ask(ctx, m)
			p.quorum.Heard(string(m.GetId()), sent, err == nil)
			p.keep(m, sent, reply, err)
		})
	}
	wg.Wait()
}

// round returns the newest replies as those of one round.
func (p *memberPinger) round(at time.Time, own *peerv1.PingResponse) *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &round{at: at, replies: maps.Clone(p.replies), differing: p.divergence.Differing(time.Now())}
	r.replies[string(own.GetId())] = own
	return r
}

// shown returns the newest round; before the first has ended, this node alone.
func (p *memberPinger) shown() *round {
	if r := p.newest.Load(); r != nil {
		return r
	}
	own := p.condition()
	return &round{at: time.Now(), replies: map[string]*peerv1.PingResponse{string(own.GetId()): own}}
}

// keep keeps the newest reply; a member that does not answer has none.
func (p *memberPinger) keep(m *raftlogv1.Member, sent time.Time, reply *peerv1.PingResponse, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := string(m.GetId())
	if err != nil {
		delete(p.replies, id)
		if p.silent[id].IsZero() {
			p.silent[id] = sent
		}
		return
	}
	delete(p.silent, id)
	p.replies[id], p.commits[id] = reply, p.raft.CommitIndex()
	took := time.Since(sent)
	if before := p.took[id]; before > 0 {
		took = min(took, 2*before)
	}
	p.took[id] = took
	p.heard(id, apply.StateAt{Index: reply.GetStateIndex(), Hash: reply.GetStateHash()})
}

// reply returns what the member said last.
func (p *memberPinger) reply(id []byte) (*peerv1.PingResponse, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.replies[string(id)]
	return r, ok
}

// replyAndLag returns the member's newest reply, and how far its state was behind what
// this node knew to be committed then.
func (p *memberPinger) replyAndLag(id []byte) (reply *peerv1.PingResponse, behind uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply, ok = p.replies[string(id)]
	commit := p.commits[string(id)]
	return reply, commit - min(commit, reply.GetAppliedIndex()), ok
}

// roundTrip returns about how long the member's answers take; 0 if there was none.
func (p *memberPinger) roundTrip(id []byte) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took[string(id)]
}

// silentSince returns since when the member has not answered; zero if it answers, or was
// never pinged.
func (p *memberPinger) silentSince(id []byte) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent[string(id)]
}

// quorumFull reports whether the disks of a majority of voters are below the low-water mark.
func (p *memberPinger) quorumFull() bool {
	full, voters := 0, p.configuration.voters()
	for _, id := range voters {
		if id == string(p.record.id()) && p.space.below.Load() {
			full++
		} else if r, ok := p.reply([]byte(id)); ok && r.GetStorageFull() {
			full++
		}
	}
	return full > len(voters)/2
}
