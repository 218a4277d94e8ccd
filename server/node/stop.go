package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// drainLimit bounds the wait for calls in flight. It is longer than the time
	// a call waits for a leader, so that nearly all end by themselves.
	drainLimit = 5 * time.Second
	// lastWords is how long a node stays after its own etags are recorded. Where
	// all nodes are stopped at once, each needs the others for its record; two
	// rounds through the log, with a change of leader in between, take less.
	lastWords = 300 * time.Millisecond
	// keeperLimit bounds telling the cluster where the etags stand.
	keeperLimit = 3 * time.Second
	// clusterLimit bounds the leadership transfer and closing Raft.
	clusterLimit = 10 * time.Second
	// leaveLimit bounds the wait for calls in flight on a node that was removed.
	leaveLimit = time.Second
	// tracesLimit bounds the sending of the last traces.
	tracesLimit = 2 * time.Second
	// abandonLimit bounds the end of a node that cannot go on: its disk may
	// hang, and a leader whose disk hangs must be gone soon.
	abandonLimit = 2 * time.Second
)

// step is one step of a shutdown.
type step struct {
	what  string
	limit time.Duration
	do    func(ctx context.Context) error
}

// stop is the list of what stops, in this order and for these reasons.
func (n *Node) stop() {
	gone := make(chan struct{})
	var answered <-chan struct{}
	takeSteps(n.log, []step{
		// Load balancers and clients go elsewhere from here on.
		{"not ready", time.Second, func(context.Context) error {
			n.readiness.stop()
			return nil
		}},
		// New calls are refused as certainly not done; those in flight end well,
		// because everything below them still works. Other nodes keep their
		// connections: this node may lead until it has transferred leadership.
		{"calls in flight", drainLimit, func(ctx context.Context) error {
			go func() {
				defer close(gone)
				n.server.GracefulStop()
			}()
			answered = n.http.finish()
			return n.service.Drain(ctx)
		}},
		// The last answers are read; no call over HTTP could do anything now.
		{"HTTP port", time.Second, func(ctx context.Context) error {
			defer n.http.close()
			return await(ctx, answered)
		}},
		// No call can ask for an etag any more: their exact values go to the disk
		// and, while there still is a leader, to the cluster.
		{"etags", keeperLimit, n.keeper.Stop},
		// No call can ask for a range any more: the rest of the reserve goes back.
		{"reserve of ranges", keeperLimit, func(ctx context.Context) error {
			if n.reserve != nil {
				n.reserve.Stop(ctx)
			}
			return nil
		}},
		// The other nodes may be stopping too, and need this one for theirs.
		{"etags of other nodes", time.Second, n.stayForOthers},
		// Leadership is transferred, then Raft ends, then its store is closed.
		{"cluster", clusterLimit, n.cluster.Shutdown},
		// What is left on the gRPC port are the streams of other nodes, which
		// would stay open permanently.
		{"gRPC port", time.Second, func(ctx context.Context) error {
			n.server.Stop()
			return await(ctx, gone)
		}},
		// Nothing calls other nodes any more.
		{"connections to other nodes", time.Second, func(context.Context) error {
			n.pool.Close()
			return nil
		}},
		// Until now it said that the node is stopping.
		{"metrics port", time.Second, func(context.Context) error {
			n.metricsPort.close()
			return nil
		}},
		// No call is left that would be recorded.
		{"audit log", time.Second, func(context.Context) error { return n.audit.Close() }},
		// The collector hears of the last calls too.
		{"traces", tracesLimit, n.tracing.Shutdown},
	})
}

// leave lets the calls in flight end on a node that was removed: one of them may
// be the call that removed it. At the limit it answers the calls that need the
// cluster in any case.
func (n *Node) leave() {
	takeSteps(n.log, []step{{"calls in flight", leaveLimit, func(ctx context.Context) error {
		n.readiness.stop()
		served := make(chan struct{})
		go func() {
			defer close(served)
			n.server.GracefulStop()
		}()
		n.http.finish()
		half, cancel := context.WithTimeout(ctx, leaveLimit/2)
		defer cancel()
		go n.cluster.Drain(half)
		if err := n.service.Drain(ctx); err != nil {
			return err
		}
		// The last answers are on their way. It takes the whole limit as long as
		// streams of other nodes stay open.
		_ = await(ctx, served)
		return nil
	}}})
}

// stayForOthers waits for lastWords, unless this node is alone.
func (n *Node) stayForOthers(ctx context.Context) error {
	if len(n.cluster.Status().Members) < 2 {
		return nil
	}
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// abandon ends a node that cannot go on. It hands nothing over and does not wait:
// a part that hangs is left behind, and ends with the process.
func (n *Node) abandon() error {
	n.readiness.stop()
	done := make(chan error, 1)
	go func() { done <- n.release() }()
	select {
	case err := <-done:
		return err
	case <-time.After(abandonLimit):
		return fmt.Errorf("not everything could be closed within %s", abandonLimit)
	}
}

// release closes all open parts, as if by a crash, also of a node that was only
// put together in part.
func (n *Node) release() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var errs []error
	if n.server != nil {
		n.server.Stop()
	}
	if n.listener != nil {
		_ = n.listener.Close() // The server has closed it, if it served.
	}
	n.http.close()
	n.metricsPort.close()
	if n.keeper != nil {
		_ = n.keeper.Stop(ctx) // That the cluster was not told is what was meant.
	}
	if n.reserve != nil {
		n.reserve.Stop(ctx) // Nothing is returned, as after a crash.
	}
	if n.cluster != nil {
		errs = append(errs, n.cluster.Shutdown(ctx))
	}
	if n.pool != nil {
		n.pool.Close()
	}
	errs = append(errs, n.audit.Close())
	n.abandonTraces()
	return errors.Join(errs...)
}

// abandonTraces ends the tracing of a node that cannot go on: what led to its end
// may be in the newest traces, so they get a moment.
func (n *Node) abandonTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit/2)
	defer cancel()
	if err := n.tracing.Shutdown(ctx); err != nil {
		n.log.Warn("the newest traces were not sent", "error", err)
	}
}

// takeSteps takes the steps one after the other, each within its own limit. A step
// that fails does not keep the others from being taken.
func takeSteps(log *slog.Logger, steps []step) {
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), s.limit)
		begin := time.Now()
		err := s.do(ctx)
		cancel()
		if err != nil {
			// The node has stopped all the same, and no promise depends on it.
			log.Warn("a step of the shutdown failed", "step", s.what, "error", err)
			continue
		}
		log.Debug("stopped", "step", s.what, "took", time.Since(begin))
	}
}

// await waits until done is closed or ctx ends.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
