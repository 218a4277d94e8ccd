package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// maxEstablishTries is the number of attempts before a leader transfers leadership.
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

// leadership is this node's work as a leader, each time it is one.
type leadership struct {
	raft         *raft.Raft
	record       *nodeRecord
	registry     Registry
	state        StateMachine
	now          func() time.Time
	batcher      *commit.Batcher
	transfer     *leaderTransfer
	configurator configurator
	stuck        *stuckTransfer
	stuckCommit  *stuckCommitWatch
	log          *slog.Logger
	// reconciler is copied for each leadership.
	reconciler       member.Reconciler
	recoverySnapshot recoverySnapshot
	// signal wakes monitor; the value tells only that it changed.
	signal *leaderSignal
	// ready is set while this node leads and has passed its first barrier.
	ready atomic.Pointer[readindex.Ready]
}

// monitor works as a leader each time this node gains leadership, under a context that
// ends with it. One leadership's work ends before the next one's starts.
func (l *leadership) monitor(ctx context.Context) {
	var seen uint64
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-l.signal.wake:
		case <-ctx.Done():
			return
		}
		count := l.signal.count.Load()
		if count == seen {
			continue
		}
		seen = count
		end()
		end = func() {}
		if l.signal.holds.Load() {
			end = l.start(ctx)
		}
	}
}

// start starts the work of a leader and returns the function that ends it and waits for
// it.
func (l *leadership) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.stuck.reset()
	l.log.Info("this node leads", "term", l.raft.CurrentTerm())
	go func() {
		defer close(done)
		l.work(ctx)
	}()
	return func() {
		l.ready.Store(nil)
		cancel()
		l.configurator.transport.StopSnapshots()
		l.batcher.StepDown()
		<-done
		l.ready.Store(nil)
		l.log.Info("this node no longer leads")
	}
}

// work is a leader's work, until ctx ends.
func (l *leadership) work(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { l.stuck.probe(ctx, l.configurator.askRaft) })
	watching.Go(func() { l.stuckCommit.watch(ctx) })
	watching.Go(func() { l.transfer.watchSlowDisk(ctx) })
	l.batcher.Hold(ctx)
	if !l.establish(ctx) {
		return
	}
	watching.Go(func() { l.transfer.watchFullDisk(ctx) })
	watching.Go(func() { l.transfer.watchPriority(ctx) })
	watching.Go(func() { l.recoverySnapshot.take(ctx) })
	l.batcher.Lead(ctx)
	reconciler := l.reconciler
	reconciler.Run(ctx)
}

// establish makes this node ready to lead. If it cannot, it transfers leadership, and if
// that fails the node ends: a leader that answers nothing is worse than none. It
// waits for a transfer in progress, which has a watchdog of its own.
func (l *leadership) establish(ctx context.Context) bool {
	var err error
	for tries := 0; tries < maxEstablishTries; tries++ {
		if err = l.prepare(ctx); err == nil || ctx.Err() != nil || l.raft.State() != raft.Leader {
			return err == nil
		}
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			tries = -1
		}
		l.log.Warn("cannot lead yet", "because", err)
		sleep(ctx, establishPause)
	}
	if transferErr := l.transfer.run(ctx, l.transfer.defaultTarget()); transferErr != nil && ctx.Err() == nil && l.raft.State() == raft.Leader {
		l.record.fail(fmt.Errorf("cluster: cannot lead, and cannot transfer leadership (%w): %w", transferErr, err))
	}
	return false
}

// prepare passes the first barrier, so that the state holds everything that earlier
// leaders committed, and forms the cluster if it is not formed yet.
//
// The read index is the barrier's own index, never the commit index: an entry of this
// node's last leadership may be committed by now without being applied.
func (l *leadership) prepare(ctx context.Context) error {
	term := l.raft.CurrentTerm()
	barrier, err := l.barrier(ctx)
	l.stuck.saw(err)
	if err != nil {
		return err
	}
	if len(l.registry.ClusterID()) == 0 {
		if err := l.form(ctx); err != nil {
			return err
		}
	}
	l.ready.Store(&readindex.Ready{Term: term, Barrier: barrier, Applied: l.state.AppliedIndex()})
	return nil
}

// barrier passes a barrier and returns its index.
func (l *leadership) barrier(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	var future raft.Future
	err := readindex.Await(ctx, func() readindex.Future {
		future = l.raft.Barrier(enqueueTimeout)
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
func (l *leadership) form(ctx context.Context) error {
	record := l.record.get()
	operation, err := op.Envelope{}.Encode(&raftlogv1.Bootstrap{ClusterId: record.ClusterID, Members: record.Members})
	if err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	header := raftlog.Header{Format: 1, ClusterID: record.ClusterID, TimeUnixNano: l.now().UnixNano()}
	entry := raftlog.AppendEntry(nil, header, [][]byte{group})
	future := commit.NewRaftLog(l.raft, enqueueTimeout).Append(entry)
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

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
