package peers

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/quorum"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// PingEvery is the interval between pings of each member, pingTimeout the
	// time it has to answer.
	PingEvery   = time.Second
	pingTimeout = 900 * time.Millisecond
	// startPingEvery is the interval in the first startPings of a process, as long as a
	// member does not answer. At a first start the nodes come up one after another, and an
	// operator who asks then must not see as silent what has answered since.
	startPingEvery = 100 * time.Millisecond
	startPings     = 10 * time.Second
)

// PingerConfig is what a Pinger needs.
type PingerConfig struct {
	Peers         Caller
	Record        *member.NodeRecord
	Table         *Table
	Raft          *raft.Raft
	Configuration Configuration
	// Witness, Hint and Quorum get what answers tell of the members' disks, of the leader
	// and of the quorum.
	Witness *Witness
	Hint    *Hint
	Quorum  *quorum.Monitor
	// States are this node's own.
	States *apply.States
	Space  *disk.Space
	// Condition is this node's own answer to a ping.
	Condition func() *peerv1.PingResponse
	// OnDivergence is called for each member whose state begins to differ; it may be nil.
	OnDivergence func()
	Log          *slog.Logger
}

// Pinger pings the other members, and takes what their answers tell of the cluster: who
// leads, how far their disks are, members that this node does not know yet. It keeps the
// answers for the status, whether a quorum of disks is nearly full, and whether the members'
// states equal this node's.
type Pinger struct {
	cfg PingerConfig

	mu      sync.Mutex
	replies map[string]*peerv1.PingResponse
	// commits are this node's commit index when each reply came.
	commits map[string]uint64
	// took is how long each member's newest answer took, and at most twice as long as the
	// previous: a busy machine occasionally answers late, which makes no link slower.
	took map[string]time.Duration
	// silent has, for each member that does not answer, the time of the first unanswered
	// ping.
	silent map[string]time.Time
	// began is when the node began; pinged is that, or when a member last pinged it.
	began, pinged time.Time
	divergence    *apply.Divergence
	// newest is the newest round; nil before the first has ended.
	newest atomic.Pointer[Round]
}

// Round is the answers of this node and the members to pings of the same time: their
// indexes can be compared.
type Round struct {
	At time.Time
	// Replies are by raw Raft id.
	Replies map[string]*peerv1.PingResponse
	// Differing are the members whose state was another than this node's.
	Differing map[string]bool
}

// NewPinger returns a Pinger with no answers yet.
func NewPinger(cfg PingerConfig) *Pinger {
	return &Pinger{
		cfg: cfg, replies: map[string]*peerv1.PingResponse{}, commits: map[string]uint64{}, took: map[string]time.Duration{},
		silent: map[string]time.Time{}, began: time.Now(), divergence: apply.NewDivergence(),
	}
}

// Duty pings all members.
func (p *Pinger) Duty() duty.Duty {
	return duty.Duty{Name: "pings", Pause: p.pause, Check: duty.Always(func(ctx context.Context) error {
		p.cfg.Space.Check()
		p.askAll(ctx)
		p.cfg.Space.SetQuorumFull(p.quorumFull())
		p.judgeState(ctx)
		return nil
	})}
}

func (p *Pinger) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.began) < startPings && len(p.silent) > 0 {
		return startPingEvery
	}
	return PingEvery
}

func (p *Pinger) askAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	began, own := time.Now(), p.cfg.Condition()
	defer func() { p.newest.Store(p.round(began, own)) }()
	var wg sync.WaitGroup
	for _, m := range p.cfg.Table.Refresh().Members {
		if p.cfg.Configuration.HasLeft(m) || p.cfg.Record.IsSelf(m) {
			continue
		}
		wg.Go(func() {
			sent := time.Now()
			reply, err := p.Ask(ctx, m)
			p.cfg.Quorum.Heard(string(m.GetId()), sent, err == nil)
			p.keep(m, sent, reply, err)
		})
	}
	wg.Wait()
}

// round returns the newest replies as those of one round.
func (p *Pinger) round(at time.Time, own *peerv1.PingResponse) *Round {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Round{At: at, Replies: maps.Clone(p.replies), Differing: p.divergence.Differing(time.Now())}
	r.Replies[string(own.GetId())] = own
	return r
}

// Newest returns the newest round; before the first has ended, this node alone.
func (p *Pinger) Newest() *Round {
	if r := p.newest.Load(); r != nil {
		return r
	}
	own := p.cfg.Condition()
	return &Round{At: time.Now(), Replies: map[string]*peerv1.PingResponse{string(own.GetId()): own}}
}

// keep keeps the newest reply; a member that does not answer has none.
func (p *Pinger) keep(m *raftlogv1.Member, sent time.Time, reply *peerv1.PingResponse, err error) {
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
	p.replies[id], p.commits[id] = reply, p.cfg.Raft.CommitIndex()
	took := time.Since(sent)
	if before := p.took[id]; before > 0 {
		took = min(took, 2*before)
	}
	p.took[id] = took
	p.heard(id, apply.StateAt{Index: reply.GetStateIndex(), Hash: reply.GetStateHash()})
}

// Reply returns what the member said last.
func (p *Pinger) Reply(id []byte) (*peerv1.PingResponse, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.replies[string(id)]
	return r, ok
}

// ReplyAndLag returns the member's newest reply, and how far its state was behind what
// this node knew to be committed then.
func (p *Pinger) ReplyAndLag(id []byte) (reply *peerv1.PingResponse, behind uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply, ok = p.replies[string(id)]
	commit := p.commits[string(id)]
	return reply, commit - min(commit, reply.GetAppliedIndex()), ok
}

// RoundTrip returns about how long the member's answers take; 0 if there was none.
func (p *Pinger) RoundTrip(id []byte) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took[string(id)]
}

// SilentSince returns since when the member has not answered; zero if it answers, or was
// never pinged.
func (p *Pinger) SilentSince(id []byte) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent[string(id)]
}

// quorumFull reports whether the disks of a majority of voters are below the low-water mark.
func (p *Pinger) quorumFull() bool {
	full, voters := 0, p.cfg.Configuration.Voters()
	for _, id := range voters {
		if id == string(p.cfg.Record.ID()) && p.cfg.Space.Below() {
			full++
		} else if r, ok := p.Reply([]byte(id)); ok && r.GetStorageFull() {
			full++
		}
	}
	return full > len(voters)/2
}
