package leader

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Registry is the table of members in the replicated state. It is safe for concurrent
// use.
type Registry interface {
	// ClusterID is the id of the cluster, 16 bytes; empty before it is formed.
	ClusterID() []byte
	// Members returns copies of all members, removed ones too, sorted by tag.
	Members() []*raftlogv1.Member
	// Membership returns the same, with the log index of the last change; 0 where the log
	// format has no such index.
	Membership() ([]*raftlogv1.Member, uint64)
	// Format is the log format that is written.
	Format() uint32
}

// StateMachine is the replicated state. Its methods may be called at any time.
type StateMachine interface {
	// AppliedIndex is the index of the newest entry the state has seen.
	AppliedIndex() uint64
	// WaitApplied waits until AppliedIndex is at least index, or ctx ends.
	WaitApplied(ctx context.Context, index uint64) error
}

type Config struct {
	// Ctx ends with the node.
	Ctx           context.Context
	Raft          *raft.Raft
	Transport     *transport.Transport
	Configuration peers.Configuration
	Record        *member.NodeRecord
	Table         *peers.Table
	Registry      Registry
	State         StateMachine
	Store         raftguard.Store
	Peers         Caller
	Batcher       *commit.Batcher
	Gatherer      *commit.Gatherer
	Pinger        *peers.Pinger
	Space         *disk.Space
	Disk          *disk.Writes
	Timeouts      *raftguard.Timeouts
	Stuck         *raftguard.StuckTransfer
	Beats         duty.Beats
	// Now is the clock that a leader writes into entries.
	Now       func() time.Time
	Heartbeat time.Duration
	Priority  uint32
	// PromoteAfter is how long a new member must keep up before it votes.
	PromoteAfter time.Duration
	Log          *slog.Logger
}

// Leadership is this node's work as a leader, in each of its leaderships.
type Leadership struct {
	// Check, Transfer and Membership may be used on every node.
	Check      VoterCheck
	Transfer   *Transfer
	Membership *Membership

	cfg *Config
	// backoff is the one of the newest leadership that stepped down.
	backoff campaignBackoff
	// ready is set while this node leads and has passed its first barrier.
	ready atomic.Pointer[readindex.Ready]
}

// NewLeadership returns the work of a node that does not lead yet.
func NewLeadership(cfg Config) *Leadership {
	transfer := &Transfer{cfg: &cfg}
	return &Leadership{Check: VoterCheck{&cfg}, Transfer: transfer, Membership: &Membership{&cfg, transfer}, cfg: &cfg}
}

// Ready returns from where on this node's reads are linearizable, if it leads and has
// passed its first barrier.
func (l *Leadership) Ready() (readindex.Ready, bool) {
	ready := l.ready.Load()
	if ready == nil {
		return readindex.Ready{}, false
	}
	return *ready, true
}

// Run works as a leader each time this node gains leadership, under a context that
// ends with it. One leadership's work ends before the next one's starts.
func (l *Leadership) Run(ctx context.Context) {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case leads := <-l.cfg.Raft.LeaderCh(): // The newest change: after another true, leadership was lost and regained.
			end()
			end = func() {}
			if leads {
				end = l.start(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

// start starts the work of a leader and returns the function that ends it and waits for
// it.
func (l *Leadership) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.cfg.Stuck.Reset()
	l.cfg.Timeouts.Leads(true)
	l.cfg.Log.Info("this node leads", "term", l.cfg.Raft.CurrentTerm())
	go func() {
		defer close(done)
		l.work(ctx)
	}()
	return func() {
		l.ready.Store(nil)
		l.cfg.Timeouts.Leads(false)
		cancel()
		l.cfg.Transport.StopSnapshots()
		l.cfg.Batcher.StepDown()
		<-done
		l.ready.Store(nil)
		l.cfg.Log.Info("this node no longer leads")
	}
}

func (l *Leadership) work(ctx context.Context) {
	established := make(chan struct{})
	var establishing sync.WaitGroup
	defer establishing.Wait()
	establishing.Go(func() {
		l.cfg.Batcher.Hold(ctx)
		if l.establish(ctx) {
			l.cfg.Batcher.Lead(ctx)
			close(established)
		}
	})
	l.duties().Run(ctx, func() bool { return l.cfg.Raft.State() == raft.Leader }, established)
}

// duties returns the duties of one leadership. If several transfers are due at the same time,
// the first is made.
func (l *Leadership) duties() *duty.Loop {
	return duty.New(
		l.cfg.Log,
		l.cfg.Beats,
		l.endStuckTransfer(),
		l.leaveStuckCommit(),
		l.Transfer.leaveSlowDisk(),
		l.Transfer.leaveFullDisk(),
		l.Transfer.leaveUnreached(),
		l.Transfer.followPriority(),
		l.recoverySnapshot(),
		l.reconciler().duty(),
	)
}

// endStuckTransfer asks Raft again while its newest answer is the refusal of a transfer: so a
// stuck transfer is found even without proposals.
func (l *Leadership) endStuckTransfer() duty.Duty {
	ask := func(context.Context) error {
		l.cfg.Stuck.Saw(configurator{l.Transfer}.askRaft())
		return nil
	}
	check := func(time.Time) duty.Task {
		if l.cfg.Stuck.Refuses() {
			return ask
		}
		return nil
	}
	return duty.Duty{Name: "stuck transfer", Every: raftguard.StuckTransferProbe, Check: check}
}

// reconciler returns the loop that makes Raft's configuration equal to the members. These are
// the replicated table's alone: a leader's is the newest.
func (l *Leadership) reconciler() *reconciler {
	c := l.cfg
	return &reconciler{
		Self: c.Record.Get().ID, Raft: configurator{l.Transfer}, Members: c.Registry.Members,
		AppliedIndex: c.Pinger.AppliedIndex, Commit: c.Raft.CommitIndex,
		Match:   func(id raft.ServerID) uint64 { return c.Transport.Match(id, c.Raft.CurrentTerm()) },
		MayVote: l.Check.mayVote, Promote: l.Membership.promote, Format: c.Registry.Format, RaiseFormat: l.Membership.raiseFormat,
		Stable: c.PromoteAfter, Logger: c.Log,
	}
}
