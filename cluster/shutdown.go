package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
)

const (
	// batcherLimit bounds the wait for other nodes' groups in flight.
	batcherLimit = time.Second
	// raftLimit bounds the end of Raft, which waits for a write in progress.
	raftLimit  = 5 * time.Second
	loopsLimit = 5 * time.Second
)

// Drain refuses new operations of this node's callers, and waits for those in flight
// until ctx ends; then the rest is answered. Other nodes' groups are still taken.
func (n *Node) Drain(ctx context.Context) {
	if e := n.up.Load(); e != nil {
		e.gatherer.Close(ctx)
	}
}

// transferAtStop transfers leadership, if this node leads and there is another voter. A
// failure is harmless: the others elect a leader when this one is gone.
func (n *Node) transferAtStop(ctx context.Context) {
	e := n.up.Load()
	if e == nil || e.raft.State() != raft.Leader || len(e.configuration.Voters()) < 2 {
		return
	}
	if err := e.leadership.Transfer.AtStop(ctx); err != nil {
		n.log.Warn("leadership was not transferred", "error", err)
	}
}

// Shutdown ends the node: it drains, transfers leadership, and closes everything. Each
// step is bounded by its own limit, and by ctx: once that has ended, draining
// and the transfer are skipped and the rest is done as if by a crash. It may be
// called more than once, and also if Start failed or was never called.
func (n *Node) Shutdown(ctx context.Context) error {
	var err error
	n.stopOnce.Do(func() { err = n.shutdown(ctx) })
	return err
}

func (n *Node) shutdown(ctx context.Context) error {
	if n.up.Load() == nil {
		// A Start in progress gives up; if it has just succeeded, the rest follows.
		n.lifecycle.close()
	}
	n.starting.Lock()
	defer n.starting.Unlock()
	e := n.up.Load()
	if e != nil {
		// Callers first: while Raft runs, operations in flight can complete.
		n.Drain(ctx)
		// Then leadership: what other nodes send from now on is refused as
		// certainly not applied, and they send it to the new leader.
		n.transferAtStop(ctx)
		// Then the leader's side, which is no longer used.
		closing, cancel := context.WithTimeout(ctx, batcherLimit)
		e.batcher.Close(closing)
		cancel()
		e.reads.Close()
		e.local.Close()
	}
	// Then the node's own loops: they use Raft.
	n.lifecycle.close()
	err := n.awaitLoops()
	if e != nil {
		// Then Raft, before its store: a write in progress must not lose its file. If
		// that does not end, the file stays open until the process ends: closing it would
		// wait for the write.
		ended := e.stopRaft()
		err = errors.Join(err, ended)
		if errors.Is(ended, errRaftRuns) {
			return err
		}
	}
	return errors.Join(err, n.store.Close())
}

func (n *Node) awaitLoops() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.lifecycle.loops.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(loopsLimit):
		return fmt.Errorf("cluster: goroutines did not end within %v", loopsLimit)
	}
}

var errRaftRuns = errors.New("cluster: raft did not end")

// stopRaft ends Raft. It closes the connections before it waits, which frees Raft's
// goroutines that are blocked on a peer. Only the first future of Shutdown resolves when
// Raft has ended. What a leader was writing is on disk then, too, unless the store has failed.
func (e *engine) stopRaft() error {
	future := e.raft.Shutdown()
	closed := e.transport.Close()
	ctx, cancel := context.WithTimeout(context.Background(), raftLimit)
	defer cancel()
	ended := raftguard.Await(ctx, func() error { e.serving.Wait(); return future.Error() })
	if ended == nil {
		_ = e.store.Flush(ctx) // The store has logged its failure.
		ended = ctx.Err()
	}
	if ended != nil {
		ended = fmt.Errorf("%w: %w", errRaftRuns, ended)
	}
	return errors.Join(ended, closed)
}
