package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/internal/nodeid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// PingEvery is the interval between pings of each member, pingTimeout the
	// time it has to answer.
	PingEvery   = time.Second
	pingTimeout = 900 * time.Millisecond
	// startPingEvery is the interval in the first startPings of a process, while a member does not
	// answer. At a first start the nodes come up one after another, and an operator who asks then
	// must not see a member as silent that has answered since.
	startPingEvery = 100 * time.Millisecond
	startPings     = 10 * time.Second
)

// Pinger pings the other members, and evaluates their answers: the leader, the progress of their
// disks, members that are new to this node. It keeps the answers for the status, whether a quorum
// of disks is nearly full, and whether the members' states equal this node's.
type Pinger struct {
	cfg Config

	mu sync.Mutex
	// contacts are by raw Raft id.
	contacts map[string]Contact
	// began is when the node began.
	began      time.Time
	divergence *apply.Divergence
	// newest is the newest round; nil before the first has ended.
	newest atomic.Pointer[Round]
}

// Contact is a Pinger's knowledge of a member.
type Contact struct {
	// Reply is the member's newest answer; nil if it did not answer the newest ping. Lag is the
	// distance of its state behind the entries known to be committed then.
	Reply *peerv1.PingResponse
	Lag   uint64
	// RoundTrip is the time of the newest answer, and at most a quarter more than of the previous: a busy
	// machine, or one that stood still, answers late, and so may several in turn, which makes no link
	// slower. 0 if there was none.
	RoundTrip time.Duration
	// SilentSince is the time of the first unanswered ping; zero if the member answers, or was
	// never pinged.
	SilentSince time.Time
	// MissedSince is the time of the first of the newest answers that all say that this node does not answer the
	// member; zero if the newest does not.
	MissedSince time.Time
}

// missedSince returns MissedSince after an answer to a ping.
func (c Contact) missedSince(reply *peerv1.PingResponse, self []byte, sent time.Time) time.Time {
	switch {
	case !Misses(reply, self):
		return time.Time{}
	case c.MissedSince.IsZero():
		return sent
	}
	return c.MissedSince
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
func NewPinger(cfg Config) *Pinger {
	return &Pinger{
		cfg: cfg, contacts: map[string]Contact{}, began: time.Now(), divergence: apply.NewDivergence(),
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
	for _, c := range p.contacts {
		if time.Since(p.began) < startPings && !c.SilentSince.IsZero() {
			return startPingEvery
		}
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
			p.forget(m)
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

func (p *Pinger) forget(m *raftlogv1.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.contacts, string(m.GetId()))
}

// round returns the newest replies as those of one round.
func (p *Pinger) round(at time.Time, own *peerv1.PingResponse) *Round {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Round{At: at, Replies: map[string]*peerv1.PingResponse{}, Differing: p.divergence.Differing(time.Now())}
	for id, c := range p.contacts {
		if c.Reply != nil {
			r.Replies[id] = c.Reply
		}
	}
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

func (p *Pinger) keep(m *raftlogv1.Member, sent time.Time, reply *peerv1.PingResponse, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := string(m.GetId())
	c := p.contacts[id]
	if err != nil {
		c.Reply, c.MissedSince = nil, time.Time{}
		if c.SilentSince.IsZero() {
			c.SilentSince = sent
		}
		p.contacts[id] = c
		return
	}
	took := time.Since(sent)
	if c.RoundTrip > 0 {
		took = min(took, c.RoundTrip*5/4)
	}
	commit := p.cfg.Raft.CommitIndex()
	p.contacts[id] = Contact{
		Reply: reply, Lag: commit - min(commit, reply.GetAppliedIndex()), RoundTrip: took,
		MissedSince: c.missedSince(reply, p.cfg.Record.ID(), sent),
	}
	p.heard(id, apply.StateAt{Index: reply.GetStateIndex(), Hash: reply.GetStateHash()})
}

// Contact returns the newest contact with a member, by its raw Raft id.
func (p *Pinger) Contact(id []byte) Contact {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.contacts[string(id)]
}

// quorumFull reports whether the disks of a majority of voters are below the low-water mark.
func (p *Pinger) quorumFull() bool {
	full, voters := 0, p.cfg.Configuration.Voters()
	for _, id := range voters {
		if id == string(p.cfg.Record.ID()) && p.cfg.Space.Below() || p.Contact([]byte(id)).Reply.GetStorageFull() {
			full++
		}
	}
	return full > len(voters)/2
}

// SilentAfter is the time without an answer to pings after which a member is out of reach: at
// least two pings.
const SilentAfter = 3 * PingEvery

// Silence returns the time without an answer to pings of a member; 0 while it answers.
func (p *Pinger) Silence(id []byte) time.Duration {
	since := p.Contact(id).SilentSince
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}

// OutOfReach returns the raw Raft ids of the voters that do not answer this node.
func (p *Pinger) OutOfReach() [][]byte {
	var ids [][]byte
	for _, id := range p.cfg.Configuration.Voters() {
		if p.Silence([]byte(id)) >= SilentAfter {
			ids = append(ids, []byte(id))
		}
	}
	return ids
}

// Unreached warns of an address that is announced and wrong, or closed to others: members that answer
// this node say that it does not answer them. A node that has just started has not been pinged yet, so
// it warns after SilentAfter.
func (p *Pinger) Unreached() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tags []string
	for id, c := range p.contacts {
		if !c.MissedSince.IsZero() && time.Since(c.MissedSince) >= SilentAfter {
			tags = append(tags, p.tag(id))
		}
	}
	if len(tags) == 0 {
		return nil
	}
	slices.Sort(tags)
	return []string{fmt.Sprintf("this node does not answer %s at %s, which it announces, though they answer it: that address is "+
		"another's, or closed to them", strings.Join(tags, ", "), p.cfg.Record.Member().GetRaftAddress())}
}

// Misses reports whether a member's reply has another as not answering.
func Misses(reply *peerv1.PingResponse, id []byte) bool {
	return slices.ContainsFunc(reply.GetOutOfReach(), func(missed []byte) bool { return bytes.Equal(missed, id) })
}

var errNoMember = errors.New("the table of members does not have this voter")

// Ask pings a member.
func (p *Pinger) Ask(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
	own := p.cfg.States.Newest()
	reply, err := p.cfg.Peers.Ping(ctx, m.GetId(), &peerv1.PingRequest{StateIndex: own.Index, StateHash: own.Hash})
	if err != nil {
		return nil, err
	}
	p.cfg.Witness.Told(nodeid.ID(m.GetId()).String(), reply.GetProcess(), reply.GetTerm(), reply.GetCommittedIndex(),
		time.Duration(reply.GetProcessAge()))
	p.cfg.Hint.heard(time.Now(), reply.GetLeader())
	p.meet(ctx, m, reply.GetLeader())
	return reply, nil
}

// AskVoter pings a voter by its raw Raft id.
func (p *Pinger) AskVoter(ctx context.Context, id string) error {
	m, ok := p.cfg.Table.ByID([]byte(id))
	if !ok {
		return errNoMember
	}
	_, err := p.Ask(ctx, m)
	return err
}

func (p *Pinger) AppliedIndex(ctx context.Context, m *raftlogv1.Member) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, quorum.PingTimeout)
	defer cancel()
	reply, err := p.Ask(ctx, m)
	return reply.GetAppliedIndex(), err
}

// meet learns, through the member that named the leader, of an unknown leader, or of the
// addresses of a leader that Raft here does not hear. The leader itself could not introduce
// itself: it is refused as unknown, or both have moved and each has the other's old address.
func (p *Pinger) meet(ctx context.Context, through *raftlogv1.Member, leader []byte) {
	if len(leader) == 0 {
		return
	}
	_, known := p.cfg.Table.ByID(leader)
	if known && !p.cfg.Hint.ask(time.Now()) {
		return
	}
	members, err := p.cfg.Peers.Members(ctx, through.GetId())
	if err != nil {
		return
	}
	for _, m := range members {
		if string(m.GetId()) == string(leader) {
			p.cfg.Hint.found(m)
		}
	}
	if known {
		return
	}
	p.cfg.Log.Info("learned of new members", "through", through.GetTag())
	if err := p.cfg.Table.learn(members); err != nil {
		p.cfg.Record.Fail(fmt.Errorf("cluster: %w", err))
	}
}
