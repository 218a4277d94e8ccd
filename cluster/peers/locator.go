package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/dialcause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// locateTimeout bounds the calls to one member's addresses. An address without a machine
	// takes all of it.
	locateTimeout = pingTimeout
	// raftSilentAfter is the silence of a Raft port, of a member that says hello, after which
	// it is a problem: a node that starts opens its Raft port last.
	raftSilentAfter = 2 * time.Second
	// locatorLogEvery is the interval at which an unchanged problem is logged.
	locatorLogEvery = 30 * time.Second
)

// Locator finds members that have moved and cannot announce it, because there is no leader
// or it has moved as well: after a change of all addresses none finds another. The operator's
// list is evidence: an address on it is used for a member that does not answer where it is
// registered, if a node says hello there as that member of this cluster. So is the registered
// gRPC address for a Raft port that has moved. As soon as the member answers where it is
// registered, that counts again: a member that only answers elsewhere may be a copy of its
// data directory. For members that it does not find, the problem names the addresses tried.
type Locator struct {
	cfg    Config
	pinger *Pinger

	mu sync.Mutex
	// problems are by raw Raft id.
	problems map[string]problem
}

// problem is why a member is not in touch.
type problem struct {
	// text is empty if there is no problem.
	text string
	// raft means that the member says hello, and its Raft port does not answer, which is always a
	// problem. A member that is down is a problem only while there is no leader.
	raft   bool
	logged time.Time
}

// NewLocator returns a Locator that has not looked yet.
func NewLocator(cfg Config, pinger *Pinger) *Locator {
	return &Locator{cfg: cfg, pinger: pinger, problems: map[string]problem{}}
}

// Duty looks for the members that do not answer pings.
func (l *Locator) Duty() duty.Duty {
	return duty.Duty{Name: "locator", Pause: l.pinger.pause, Check: duty.Always(func(ctx context.Context) error {
		var looking sync.WaitGroup
		for _, m := range l.cfg.Table.Refresh().Registered {
			if !m.GetRemoved() && !l.cfg.Record.IsSelf(m) {
				looking.Go(func() { l.look(ctx, m) })
			}
		}
		looking.Wait()
		return nil
	})}
}

func (l *Locator) look(ctx context.Context, m *raftlogv1.Member) {
	since := l.pinger.Contact(m.GetId()).SilentSince
	silent := !since.IsZero()
	if !silent && !l.cfg.Table.Moved(m.GetId()) {
		l.note(m, problem{})
		return
	}
	if l.cfg.Transport.HeldBack(member.ServerID(m.GetId())) != nil {
		l.note(m, l.raftProblem(m))
		return
	}
	at, err := l.ask(ctx, m)
	switch {
	case ctx.Err() != nil:
	case err != nil && silent:
		l.note(m, problem{text: err.Error()})
	case err == nil && l.cfg.Table.found(m, at):
		l.cfg.Transport.Disconnect(member.ServerID(m.GetId())) // It has to greet again, at the new address.
		l.cfg.Log.Warn("a member is dialled at other addresses than those registered, until it has announced them",
			"tag", m.GetTag(), "grpc", at.GRPC, "raft", at.Raft, "registered_grpc", m.GetGrpcAddress(), "registered_raft", m.GetRaftAddress())
	case silent && time.Since(since) >= raftSilentAfter:
		l.note(m, l.raftProblem(m))
	default:
		l.note(m, problem{})
	}
}

// raftProblem is the problem that the member's Raft port was not reached. If no dial failed, the
// port was reached, and pings are not answered.
func (l *Locator) raftProblem(m *raftlogv1.Member) problem {
	why := "pings are not answered"
	if _, err := l.cfg.Transport.Unreachable(member.ServerID(m.GetId())); err != nil {
		why = dialcause.Short(err.Error())
	}
	dialled, _ := l.cfg.Table.ByID(m.GetId())
	return problem{text: fmt.Sprintf("on its Raft port, %s (%s)", dialled.GetRaftAddress(), why), raft: true}
}

// ask calls the member at its registered addresses and at its addresses on the list, and returns
// the first at which it answers; the error names the addresses that do not answer, or who answers
// there.
func (l *Locator) ask(ctx context.Context, m *raftlogv1.Member) (member.Addresses, error) {
	ctx, cancel := context.WithTimeout(ctx, locateTimeout)
	defer cancel()
	places := []member.Listed{{Tag: m.GetTag(), Address: m.GetGrpcAddress()}}
	for _, p := range l.cfg.Listed {
		if (p.Tag == "" || p.Tag == m.GetTag()) && p.Address != m.GetGrpcAddress() {
			places = append(places, p)
		}
	}
	found, failed := make([]member.Addresses, len(places)), make([]error, len(places))
	var asking sync.WaitGroup
	for i, p := range places {
		asking.Go(func() { found[i], failed[i] = l.greet(ctx, m, p) })
	}
	asking.Wait()
	for i, err := range failed {
		if err == nil {
			return found[i], nil
		}
	}
	return member.Addresses{}, errors.New(strings.ReplaceAll(errors.Join(failed...).Error(), "\n", ", nor "))
}

// greet asks the node at a place whether it is the member, and where its Raft port is.
func (l *Locator) greet(ctx context.Context, m *raftlogv1.Member, at member.Listed) (member.Addresses, error) {
	from := "on the list"
	if at.Address == m.GetGrpcAddress() {
		from = "as registered"
	}
	reply, err := l.cfg.Peers.Hello(ctx, at.Tag, at.Address, &peerv1.HelloRequest{Self: l.cfg.Record.Member()})
	switch {
	case err != nil:
		return member.Addresses{}, fmt.Errorf("at %s, %s (%w)", at.Address, from, err)
	case len(reply.GetClusterId()) == 0:
		return member.Addresses{}, fmt.Errorf("at %s, %s (a node without a cluster answers)", at.Address, from)
	case !bytes.Equal(reply.GetClusterId(), l.cfg.Record.Get().ClusterID):
		return member.Addresses{}, fmt.Errorf("at %s, %s (a node of cluster %x answers)", at.Address, from, reply.GetClusterId())
	case !bytes.Equal(reply.GetSelf().GetId(), m.GetId()):
		return member.Addresses{}, fmt.Errorf("at %s, %s (node %s answers)", at.Address, from, reply.GetSelf().GetTag())
	}
	return member.Addresses{GRPC: at.Address, Raft: reply.GetSelf().GetRaftAddress()}, nil
}

func (l *Locator) note(m *raftlogv1.Member, p problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, before := time.Now(), l.problems[string(m.GetId())]
	p.logged = before.logged
	if l.matters(p, now) && (p.raft != before.raft || now.Sub(p.logged) >= locatorLogEvery) {
		p.logged = now
		l.cfg.Log.Warn("member " + m.GetTag() + " does not answer " + p.text)
	}
	l.problems[string(m.GetId())] = p
}

func (l *Locator) matters(p problem, now time.Time) bool {
	return p.text != "" && (p.raft || l.cfg.Hint.lost(now))
}

// Problem returns where a member does not answer, and why, as in "at b:7400, as registered (connection
// refused)"; empty if that does not matter.
func (l *Locator) Problem(id []byte) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.problems[string(id)]; l.matters(p, time.Now()) {
		return p.text
	}
	return ""
}
