package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// transferTimeout bounds a leadership transfer: Raft gives up after its election
// timeout, and then the new leader must become known.
const transferTimeout = 5 * time.Second

// Caller calls other nodes as the leader's business needs it: see cluster.Peers.
type Caller interface {
	Transfer(ctx context.Context, id []byte, req *peerv1.TransferRequest) (*peerv1.TransferResponse, error)
	MayRemove(ctx context.Context, id []byte, req *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error)
}

// Transfer transfers leadership to other voters, as in raft thesis 3.10.
type Transfer struct {
	cfg      *Config
	attempts transferAttempts
	// running is held by the one transfer that runs.
	running sync.Mutex
	// priorityTransfers and toldIn belong to the current leadership's work. toldIn is the
	// term in which a voter was last told to campaign because of this node's slow disk; 0
	// once the disk is not slow.
	priorityTransfers priorityTransfers
	toldIn            uint64
}

var (
	errDiskHangs   = errors.New("a write to its disk hangs")
	errTargetSlow  = errors.New("the voter's disk is slow too")
	errTransfers   = errors.New("another transfer is in progress")
	errNotElected  = errors.New("the voter that was told to campaign was not elected")
	errNoNewLeader = errors.New("a voter was told to campaign, but no new leader is known yet")
)

// Request transfers leadership to the voter with this tag, wherever the leader is; see
// Node.Transfer.
func (t *Transfer) Request(ctx context.Context, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if _, err := t.cfg.Gatherer.WaitLeader(ctx); err != nil {
		return "", err
	}
	leader, ok := t.Leader()
	if !ok {
		return "", outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	if t.cfg.Record.IsSelf(leader) {
		return t.TransferOwn(ctx, tag)
	}
	reply, err := t.cfg.Peers.Transfer(ctx, leader.GetId(), &peerv1.TransferRequest{Tag: tag})
	if err != nil {
		return "", err
	}
	m, _ := t.cfg.Table.ByID(reply.GetLeader())
	return m.GetTag(), nil
}

// Leader returns the leader that this node knows of.
func (t *Transfer) Leader() (*raftlogv1.Member, bool) {
	return t.cfg.Table.ByServerID(t.cfg.Gatherer.Leader())
}

// TransferOwn transfers this node's own leadership.
func (t *Transfer) TransferOwn(ctx context.Context, tag string) (string, error) {
	if t.cfg.Raft.State() != raft.Leader {
		return "", outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	to, err := t.targetWithTag(ctx, tag)
	if err != nil || to.ID == raft.ServerID(t.cfg.Record.Name()) {
		return tag, err
	}
	return t.run(ctx, to)
}

// ToAny transfers leadership to the default target, as run does.
func (t *Transfer) ToAny(ctx context.Context) error { return t.to(ctx, t.defaultTarget()) }

func (t *Transfer) to(ctx context.Context, to raft.Server) error {
	_, err := t.run(ctx, to)
	return err
}

// run transfers leadership to a server, or to Raft's choice if target is empty, and returns the tag
// of the new leader. It is bounded by transferTimeout and ctx. The error is a refusal if this node
// leads on, and else an *outcome.Error with Unknown.
//
// The library's error says neither: it gives up after the election timeout, and knows of success
// only when this node has left its leader loop, which may take longer, because first it writes the
// new term.
//
// run refuses while a write of this node hangs: the voter's last answer waits for the write, and a
// second transfer behind the first would stay in the library (hashicorp/raft issue 696).
// leaveSlowDisk needs no transfer.
func (t *Transfer) run(ctx context.Context, target raft.Server) (leader string, err error) {
	if !t.running.TryLock() {
		return "", t.leadsOn(errTransfers)
	}
	defer t.running.Unlock()
	return t.alone(ctx, target)
}

// alone is run for a caller that holds running.
func (t *Transfer) alone(ctx context.Context, target raft.Server) (leader string, err error) {
	if t.cfg.Disk.Hang() {
		return "", t.leadsOn(errDiskHangs)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, transferTimeout)
	defer cancel()
	term := t.cfg.Raft.CurrentTerm()
	told, limit, err := t.attempt(ctx, target)
	// Again if the entries on their way have turned out to take longer than was known.
	for err != nil && !told && ctx.Err() == nil && t.cfg.Timeouts.TransferNeeds() > limit {
		told, limit, err = t.attempt(ctx, target)
	}
	if err != nil && !told {
		return "", t.leadsOn(err)
	}
	if leader = t.awaitNewLeader(ctx); leader != "" {
		return leader, nil
	}
	if caller.Err() == nil && t.cfg.Raft.State() == raft.Leader && t.cfg.Raft.CurrentTerm() == term {
		return "", t.leadsOn(errNotElected)
	}
	return "", outcome.NewUnknown(outcome.NoQuorum, errNoNewLeader) // A caller that leaves early knows no more.
}

// attempt has the library transfer leadership. It returns whether a voter was told to campaign, the
// time that the library had, and its error: the leadership may move although there is one.
func (t *Transfer) attempt(ctx context.Context, to raft.Server) (told bool, limit time.Duration, err error) {
	limit, lower := t.cfg.Timeouts.RaiseForTransfer()
	defer lower()
	t.cfg.Transport.BeginTransfer()
	err = raftguard.Await(ctx, func() error {
		if to.ID == "" {
			return t.cfg.Raft.LeadershipTransfer().Error()
		}
		return t.cfg.Raft.LeadershipTransferToServer(to.ID, to.Address).Error()
	})
	if ctx.Err() == nil {
		t.cfg.Stuck.Saw(err) // A transfer that has ended is not stuck, even if it failed.
	}
	return t.cfg.Transport.EndTransfer(), limit, err
}

// leadsOn is the error of a transfer after which this node leads as before.
func (t *Transfer) leadsOn(why error) error {
	return refusal(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_TRANSFERRED,
		fmt.Sprintf("leadership was not transferred, node %s leads: %v", t.cfg.Record.Get().Tag, why))
}

func (t *Transfer) targetWithTag(ctx context.Context, tag string) (raft.Server, error) {
	if tag == "" {
		return t.defaultTarget(), nil
	}
	m, ok := t.cfg.Table.ByTag(tag)
	if !ok || m.GetRemoved() {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, "there is no member "+tag)
	}
	servers := t.cfg.Configuration.Servers()
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return s.ID == member.ServerID(m.GetId()) && s.Suffrage == raft.Voter })
	if i < 0 {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, "member "+tag+" does not vote")
	}
	if why := t.unfit(m); why != "" {
		return raft.Server{}, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, why)
	}
	return servers[i], t.checkAnswers(ctx, m)
}

// unfit returns why a member is no transfer target: it is in no better condition to lead than
// this node. Empty means that the member is fit.
func (t *Transfer) unfit(m *raftlogv1.Member) string {
	reply := t.cfg.Pinger.Contact(m.GetId()).Reply
	switch {
	case reply.GetStorageFull() && !t.cfg.Space.Below():
		return "the disk of member " + m.GetTag() + " is nearly full"
	case reply.GetStorageSlow() && !t.cfg.Disk.Slow(time.Now()):
		return "the disk of member " + m.GetTag() + " is slow"
	case reply != nil && t.links().lonely(string(m.GetId())):
		return "member " + m.GetTag() + " and most of the voters do not answer each other"
	case reply != nil && reply.GetLeaderPriority() == 0 && t.cfg.Priority > 0:
		return "member " + m.GetTag() + " has leader-priority 0"
	}
	return ""
}

func (t *Transfer) checkAnswers(ctx context.Context, m *raftlogv1.Member) error {
	silent, err := VoterCheck{t.cfg}.silent(ctx, []*raftlogv1.Member{m})
	if err == nil && len(silent) > 0 {
		err = refusal(raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE, "member "+m.GetTag()+" does not answer the leader")
	}
	return err
}

// awaitNewLeader waits until another leader than this node is known, and returns its tag; empty if
// ctx ends first.
func (t *Transfer) awaitNewLeader(ctx context.Context) string {
	for ctx.Err() == nil {
		if m, ok := t.Leader(); ok && !t.cfg.Record.IsSelf(m) {
			return m.GetTag()
		}
		pause.For(ctx, adminPause)
	}
	return ""
}

// targets returns the possible transfer targets: the other voters that answered the last
// ping, but for those whose Raft ports could not be dialled: a voter that has just ended answered
// the last ping, too.
func (t *Transfer) targets() []transferTarget {
	var all []transferTarget
	links := t.links()
	for _, s := range t.cfg.Configuration.Servers() {
		m, known := t.cfg.Table.ByServerID(string(s.ID))
		if !known || s.Suffrage != raft.Voter || t.cfg.Record.IsSelf(m) {
			continue
		}
		_, unreachable := t.cfg.Transport.Unreachable(s.ID)
		if c := t.cfg.Pinger.Contact(m.GetId()); c.Reply != nil && unreachable == nil {
			reply := c.Reply
			all = append(all, transferTarget{
				server: s, applied: reply.GetAppliedIndex(), behind: c.Lag, priority: reply.GetLeaderPriority(),
				full: reply.GetStorageFull(), slow: reply.GetStorageSlow(), lonely: links.lonely(string(m.GetId())),
				attempted: t.attempts.newestTo(s.ID),
			})
		}
	}
	return all
}

// nextTarget returns the best target and notes the attempt; false if no voter is fit.
func (t *Transfer) nextTarget() (to raft.Server, found bool) {
	best, found, _ := bestTarget(t.targets())
	if found {
		t.attempts.add(best.server.ID)
	}
	return best.server, found
}

// defaultTarget returns the target of a transfer that names none. It is empty, so that Raft
// chooses the most up-to-date voter, unless the voters differ in disk or priority.
func (t *Transfer) defaultTarget() raft.Server {
	best, found, differ := bestTarget(t.targets())
	if !differ {
		return raft.Server{}
	}
	if found {
		t.attempts.add(best.server.ID)
	}
	return best.server
}

func transferDuty(name string, every time.Duration, check func(time.Time) duty.Task) duty.Duty {
	return duty.Duty{
		Name: name, Every: every, Check: check, Late: true, Transfers: true,
		Failed: "leadership was not transferred", Level: slog.LevelWarn,
	}
}
