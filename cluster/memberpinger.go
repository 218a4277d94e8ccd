package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/quorum"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// memberPingEvery is the interval between pings of each member, memberPingTimeout the
	// time it has to answer.
	memberPingEvery   = time.Second
	memberPingTimeout = 900 * time.Millisecond
)

// memberPinger pings the other members. It keeps their answers for the status, whether a
// quorum of disks is nearly full, and whether their states equal this node's.
type memberPinger struct {
	e       *engine
	mu      sync.Mutex
	replies map[string]*peerv1.PingResponse
	// silent has, for each member that does not answer, the time of the first unanswered
	// ping.
	silent     map[string]time.Time
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

func newMemberPinger(e *engine) *memberPinger {
	return &memberPinger{e: e, replies: map[string]*peerv1.PingResponse{}, silent: map[string]time.Time{}, divergence: apply.NewDivergence()}
}

// run pings all members periodically, until ctx ends.
func (p *memberPinger) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.e.node.space.look()
		p.ask(ctx)
		p.e.node.space.others.Store(p.quorumFull())
		p.judgeState(ctx)
		sleep(ctx, memberPingEvery)
	}
}

// ask pings all other members at the same time.
func (p *memberPinger) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, memberPingTimeout)
	defer cancel()
	began, own := time.Now(), p.e.node.condition()
	defer func() { p.newest.Store(p.round(began, own)) }()
	var wg sync.WaitGroup
	for _, m := range p.e.node.roster.refresh().members {
		if m.GetRemoved() || p.e.isSelf(m) {
			continue
		}
		wg.Go(func() {
			sent := time.Now()
			reply, err := p.e.ping(ctx, m)
			p.e.quorum.Heard(string(m.GetId()), sent, err == nil)
			p.record(m, sent, reply, err)
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
	own := p.e.node.condition()
	return &round{at: time.Now(), replies: map[string]*peerv1.PingResponse{string(own.GetId()): own}}
}

// record keeps the newest reply; a member that does not answer has none.
func (p *memberPinger) record(m *raftlogv1.Member, sent time.Time, reply *peerv1.PingResponse, err error) {
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
	p.replies[id] = reply
	p.heard(id, apply.StateAt{Index: reply.GetStateIndex(), Hash: reply.GetStateHash()})
}

// reply returns what the member said last.
func (p *memberPinger) reply(id []byte) (*peerv1.PingResponse, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.replies[string(id)]
	return r, ok
}

// silentSince returns since when the member has not answered; zero if it answers, or was
// never pinged.
func (p *memberPinger) silentSince(id []byte) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent[string(id)]
}

// quorumFull reports whether the disks of a majority of voters are below the mark.
func (p *memberPinger) quorumFull() bool {
	full, voters := 0, p.e.voters()
	for _, id := range voters {
		if id == string(p.e.id()) && p.e.node.space.below.Load() {
			full++
		} else if r, ok := p.reply([]byte(id)); ok && r.GetStorageFull() {
			full++
		}
	}
	return full > len(voters)/2
}

// progress returns a member's applied index.
func (p *memberPinger) progress(ctx context.Context, m *raftlogv1.Member) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, quorum.PingTimeout)
	defer cancel()
	reply, err := p.e.ping(ctx, m)
	return reply.GetAppliedIndex(), err
}

// errOtherNode means that another node answered than the one that was pinged.
var errOtherNode = errors.New("another node answers at this member's address")

// ping pings a member. The member itself must answer: its address may belong to another
// node by now.
func (e *engine) ping(ctx context.Context, m *raftlogv1.Member) (*peerv1.PingResponse, error) {
	own := e.machine.States().Newest()
	reply, err := e.node.cfg.Peers.Ping(ctx, m.GetTag(), m.GetGrpcAddress(), &peerv1.PingRequest{StateIndex: own.Index, StateHash: own.Hash})
	switch {
	case err != nil:
		return nil, err
	case string(reply.GetId()) != string(m.GetId()):
		return nil, errOtherNode
	case reply.GetCallerRemoved():
		e.node.removed()
	}
	e.witness.Told(member.ID(m.GetId()).String(), reply.GetProcess(), reply.GetTerm(), reply.GetCommittedIndex())
	e.hint.heard(time.Now(), reply.GetLeader())
	e.meet(ctx, m, reply.GetLeader())
	return reply, nil
}

// pingVoter pings a voter by its raw Raft id.
func (e *engine) pingVoter(ctx context.Context, id string) error {
	m, ok := e.node.roster.byID([]byte(id))
	if !ok {
		return errOtherNode
	}
	_, err := e.ping(ctx, m)
	return err
}

// meet learns of an unknown leader through the member that named it. The leader itself
// could not: it is refused as unknown.
func (e *engine) meet(ctx context.Context, through *raftlogv1.Member, leader []byte) {
	if _, known := e.node.roster.byID(leader); known || len(leader) == 0 {
		return
	}
	reply, err := e.node.cfg.Peers.Hello(ctx, through.GetTag(), through.GetGrpcAddress(), &peerv1.HelloRequest{Self: e.node.member()})
	if err != nil || !bytes.Equal(reply.GetSelf().GetId(), through.GetId()) || !bytes.Equal(reply.GetClusterId(), e.node.ClusterID()) {
		return
	}
	e.node.log.Info("learned of new members", "through", through.GetTag())
	if err := e.node.roster.learn(reply.GetMembers()); err != nil {
		e.node.lifecycle.fail(fmt.Errorf("cluster: %w", err))
	}
}

// id returns this node's raw Raft id.
func (e *engine) id() []byte { return e.node.record.get().ID.Bytes() }

func (e *engine) isSelf(m *raftlogv1.Member) bool { return string(m.GetId()) == string(e.id()) }

// voters returns the raw Raft ids of the voters, by Raft's configuration.
func (e *engine) voters() []string {
	var ids []string
	for _, s := range e.servers() {
		if m, ok := e.node.roster.byServerID(string(s.ID)); ok && s.Suffrage == raft.Voter {
			ids = append(ids, string(m.GetId()))
		}
	}
	return ids
}

// voterNames returns the Raft names of the voters.
func (e *engine) voterNames() []raft.ServerID {
	var names []raft.ServerID
	for _, s := range e.servers() {
		if s.Suffrage == raft.Voter {
			names = append(names, s.ID)
		}
	}
	return names
}

// servers returns Raft's newest configuration, which is known without asking
// Raft's main loop.
func (e *engine) servers() []raft.Server { return e.raft.GetConfiguration().Configuration().Servers }
