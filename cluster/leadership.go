package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

const (
	// barrierTimeout bounds the wait for the entries of earlier leaders to be
	// applied here. It covers a long log replayed after a restart.
	barrierTimeout = 60 * time.Second
	// establishPause is the interval between attempts to establish leadership.
	establishPause = 100 * time.Millisecond
	// maxEstablishTries is the number of attempts before a leader hands over.
	maxEstablishTries = 3
)

// leaderSignal passes on changes of leadership. Raft's main loop blocks until a change is
// received, so receiving and acting on it are two goroutines.
type leaderSignal struct {
	notify chan bool
	// count counts the changes, and holds is the newest: a change that is followed by
	// another before it is read still changes count.
	count atomic.Uint64
	holds atomic.Bool
	wake  chan struct{}
}

func newLeaderSignal() *leaderSignal {
	return &leaderSignal{notify: make(chan bool, 1), wake: make(chan struct{}, 1)}
}

// listen receives the changes until ctx ends; a Raft that is shutting down does not block
// on them.
func (o *leaderSignal) listen(ctx context.Context) {
	for {
		select {
		case holds := <-o.notify:
			o.holds.Store(holds)
			o.count.Add(1)
			select {
			case o.wake <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

// monitorLeadership works as a leader each time this node gains leadership, under a
// context that ends with it. One leadership's work ends before the next one's starts.
func (e *engine) monitorLeadership(ctx context.Context) {
	var seen uint64
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-e.leaderSignal.wake:
		case <-ctx.Done():
			return
		}
		count := e.leaderSignal.count.Load()
		if count == seen {
			continue
		}
		seen = count
		end()
		end = func() {}
		if e.leaderSignal.holds.Load() {
			end = e.startLeading(ctx)
		}
	}
}

// startLeading starts the work of a leader and returns the function that ends it and
// waits for it.
func (e *engine) startLeading(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	e.stuckTransfer.reset()
	e.node.log.Info("this node leads", "term", e.raft.CurrentTerm())
	go func() {
		defer close(done)
		e.leaderLoop(ctx)
	}()
	return func() {
		e.ready.Store(nil)
		cancel()
		e.batcher.Resign()
		<-done
		e.ready.Store(nil)
		e.node.log.Info("this node no longer leads")
	}
}

// leaderLoop is a leader's work, until ctx ends.
func (e *engine) leaderLoop(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { e.stuckTransfer.probe(ctx, e.askRaft) })
	watching.Go(func() { e.watchProgress(ctx) })
	if !e.establishLeadership(ctx) {
		return
	}
	watching.Go(func() { e.leaveToRoom(ctx) })
	e.batcher.Lead(ctx)
	e.reconciler().Run(ctx)
}

// establishLeadership makes this node ready to lead. If it cannot, leadership goes to
// another node, and if there is none the node ends: a leader that answers nothing is
// worse than none. It waits for a transfer in progress, which has a watchdog of its own.
func (e *engine) establishLeadership(ctx context.Context) bool {
	var err error
	for tries := 0; tries < maxEstablishTries; tries++ {
		if err = e.prepare(ctx); err == nil || ctx.Err() != nil || e.raft.State() != raft.Leader {
			return err == nil
		}
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			tries = -1
		}
		e.node.log.Warn("cannot lead yet", "because", err)
		sleep(ctx, establishPause)
	}
	if transferErr := e.transfer(ctx, e.heir()); transferErr != nil && ctx.Err() == nil && e.raft.State() == raft.Leader {
		e.node.lifecycle.fail(fmt.Errorf("cluster: cannot lead, and cannot hand over (%w): %w", transferErr, err))
	}
	return false
}

// prepare passes the first barrier, so that the state holds everything that earlier
// leaders committed, and forms the cluster if it is not formed yet.
//
// The read index is the barrier's own index, never the commit index: an entry of this
// node's last leadership may be committed by now without being applied.
func (e *engine) prepare(ctx context.Context) error {
	term := e.raft.CurrentTerm()
	barrier, err := e.barrier(ctx)
	e.stuckTransfer.saw(err)
	if err != nil {
		return err
	}
	if len(e.node.cfg.Registry.ClusterID()) == 0 {
		if err := e.form(ctx); err != nil {
			return err
		}
	}
	e.ready.Store(&readindex.Ready{Term: term, Barrier: barrier, Applied: e.node.cfg.StateMachine.AppliedIndex()})
	return nil
}

// barrier passes a barrier and returns its index.
func (e *engine) barrier(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	var future raft.Future
	err := readindex.Await(ctx, func() readindex.Future {
		future = e.raft.Barrier(enqueueTimeout)
		return future
	})
	if err != nil {
		return 0, fmt.Errorf("passing a barrier: %w", err)
	}
	// A barrier is an entry like any other, though Raft does not say so.
	entry, ok := future.(raft.IndexFuture)
	if !ok {
		return 0, errors.New("passing a barrier: its index is not known")
	}
	return entry.Index(), nil
}

// form writes the entry that forms the cluster, from the plan in the node's record. All
// nodes of a first start have the same plan, so it does not matter who leads first; a
// second such entry is refused by the state machine.
func (e *engine) form(ctx context.Context) error {
	record := e.node.record.get()
	operation, err := op.Envelope{}.Encode(&raftlogv1.Bootstrap{ClusterId: record.ClusterID, Members: record.Members})
	if err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	header := raftlog.Header{Format: 1, ClusterID: record.ClusterID, TimeUnixNano: e.node.cfg.Now().UnixNano()}
	entry := raftlog.AppendEntry(nil, header, [][]byte{group})
	future := commit.NewRaftLog(e.raft, enqueueTimeout).Append(entry)
	select {
	case <-future.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	results, err := future.Results()
	if err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	if len(results) != 1 || results[0].Status != raftlog.Applied {
		return errors.New("forming the cluster: the state machine refused")
	}
	return nil
}

// transfer hands leadership over: to the given server, or to the one Raft chooses if to
// is empty. It is bounded by Raft's election timeout and ctx.
func (e *engine) transfer(ctx context.Context, to raft.Server) error {
	err := readindex.Await(ctx, func() readindex.Future {
		if to.ID == "" {
			return e.raft.LeadershipTransfer()
		}
		return e.raft.LeadershipTransferToServer(to.ID, to.Address)
	})
	if ctx.Err() == nil {
		e.stuckTransfer.saw(err) // A transfer that has ended is not stuck, even if it failed.
	}
	return err
}

// reconciler returns the loop that makes Raft's configuration equal to the replicated
// table of members: a leader's table is the newest, and the roster's additions do not
// count.
func (e *engine) reconciler() *member.Reconciler {
	n := e.node
	return &member.Reconciler{
		Self: n.record.get().ID, Raft: configurator{e}, Members: n.cfg.Registry.Members,
		Progress: e.pinger.progress, Commit: e.raft.CommitIndex,
		MayVote: e.mayVote, Promote: e.promote, Format: n.cfg.Registry.Format, RaiseFormat: e.raiseFormat,
		Stable: n.cfg.PromoteAfter, Logger: n.log,
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
