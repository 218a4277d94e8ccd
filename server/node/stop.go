package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/internal/pause"
)

const (
	// drainLimit bounds the wait for calls in flight. It is longer than a call's wait for a
	// leader, so that nearly all end by themselves.
	drainLimit = 5 * time.Second
	// othersLimit is how long a node stays after its own etags are recorded. If all nodes are
	// stopped at the same time, each needs the others for its record; two rounds through the
	// log, with a change of leader in between, take less.
	othersLimit = 300 * time.Millisecond
	// keeperLimit bounds recording the last etags in the cluster.
	keeperLimit = 3 * time.Second
	// clusterLimit bounds the leadership transfer and closing Raft.
	clusterLimit = 10 * time.Second
	// leaveLimit bounds the wait for calls in flight on a node that was removed.
	leaveLimit = time.Second
	// tracesLimit bounds the sending of the last traces.
	tracesLimit = 2 * time.Second
	// abandonLimit bounds the end of a node that cannot go on: its disk may hang, and a leader
	// whose disk hangs must be gone soon.
	abandonLimit = 2 * time.Second
)

// step is one step of a shutdown.
type step struct {
	what  string
	limit time.Duration
	do    func(ctx context.Context) error
}

// quickly is what a step does that neither fails nor waits.
func quickly(do func()) func(context.Context) error {
	return func(context.Context) error {
		do()
		return nil
	}
}

// stop stops the parts in this order, for these reasons.
func (n *Node) stop() {
	gone := make(chan struct{})
	var answered <-chan struct{}
	takeSteps(n.log, []step{
		// Load balancers and clients use other nodes from here on.
		{"not ready", time.Second, quickly(n.readiness.stop)},
		// New calls are refused as certainly not applied; calls in flight succeed, because
		// everything below them still works. Other members call on the Raft port: this node
		// may lead until it has transferred leadership.
		{"calls in flight", drainLimit, func(ctx context.Context) error {
			go func() {
				defer close(gone)
				n.server.GracefulStop()
			}()
			answered = n.http.finish()
			return n.service.Drain(ctx)
		}},
		// The last answers are read; no HTTP call could succeed now.
		{"HTTP port", time.Second, func(ctx context.Context) error {
			defer n.http.close()
			return await(ctx, answered)
		}},
		// No call can ask for an etag any more: the exact values are written to the disk and,
		// while there still is a leader, to the cluster.
		{"etags", keeperLimit, n.keeper.Stop},
		// No call can ask for a range any more: the reserve is returned.
		{"reserve of ranges", keeperLimit, func(ctx context.Context) error {
			n.reserve.Stop(ctx)
			return nil
		}},
		// The other nodes may be stopping too, and need this node for their etags.
		{"etags of other nodes", time.Second, n.stayForOthers},
		// Leadership is transferred, then Raft ends, then its store is closed.
		{"cluster", clusterLimit, n.cluster.Shutdown},
		// What is left on the gRPC port has not ended within the limits above.
		{"gRPC port", time.Second, func(ctx context.Context) error {
			n.server.Stop()
			return await(ctx, gone)
		}},
		// Nothing calls other nodes any more.
		{"connections to other nodes", time.Second, quickly(n.pool.Close)},
		// Until now it reported that the node is stopping.
		{"metrics port", time.Second, quickly(n.metricsPort.close)},
		// No call is left to record.
		{"audit log", time.Second, func(context.Context) error { return n.audit.Close() }},
		// The last calls are traced too.
		{"traces", tracesLimit, n.opts.Tracing.Shutdown},
	})
}

// leave lets the calls in flight end on a removed node: one of them may be the call that
// removed it. At the limit it answers the calls that need the cluster in any case.
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
		// The last answers are being sent.
		_ = await(ctx, served)
		return nil
	}}})
}

// stayForOthers waits for othersLimit, unless this node is the only member.
func (n *Node) stayForOthers(ctx context.Context) error {
	if len(n.cluster.Status().Members) < 2 {
		return nil
	}
	pause.For(ctx, othersLimit)
	return nil
}

// abandon ends a node that cannot go on. It transfers nothing and does not wait: a part that
// hangs is left, and ends with the process.
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

// release closes all open parts, as if by a crash. It also works on a partly assembled node.
func (n *Node) release() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var errs []error
	if n.server != nil {
		n.server.Stop()
	}
	if n.listener != nil {
		_ = n.listener.Close() // Closed already if the server has served.
	}
	n.http.close()
	n.metricsPort.close()
	if n.keeper != nil {
		_ = n.keeper.Stop(ctx) // As after a crash, the cluster gets no record.
	}
	n.reserve.Stop(ctx) // Nothing is returned, as after a crash.
	if n.cluster != nil {
		errs = append(errs, n.cluster.Shutdown(ctx))
	}
	if n.pool != nil {
		n.pool.Close()
	}
	errs = append(errs, n.audit.Close())
	// The newest traces may show why the node cannot go on, so they get a short time.
	ctx, cancel = context.WithTimeout(context.Background(), abandonLimit/2)
	defer cancel()
	if err := n.opts.Tracing.Shutdown(ctx); err != nil {
		n.log.Warn("the newest traces were not sent", "error", err)
	}
	return errors.Join(errs...)
}

// takeSteps takes the steps in their order, each within its own limit, even if earlier steps
// failed.
func takeSteps(log *slog.Logger, steps []step) {
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), s.limit)
		begin := time.Now()
		err := s.do(ctx)
		cancel()
		if err != nil {
			// The node has stopped nevertheless, and no promise depends on the step.
			log.Warn("a step of the shutdown failed", "step", s.what, "error", err)
			continue
		}
		log.Debug("stopped", "step", s.what, "took", time.Since(begin))
	}
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
