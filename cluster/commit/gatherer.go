package commit

import (
	"context"
	"sync"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// Gatherer is the origin's side of group commit: it gathers this node's operations into
// groups and sends each group to the leader until there is an answer. A node has one
// Gatherer, whether it leads or not. It is safe for concurrent use.
type Gatherer struct {
	cfg  Config
	pool waiterPool

	loop
	waiting queue
	// sender holds the group in flight, so that the loss of the quorum ends its callers' wait
	// without a network call.
	sender   groupSender
	reach    reach
	made     time.Time
	expiring sync.WaitGroup
}

// New starts a Gatherer; Close ends it. It starts without a quorum and a leader: see
// SetQuorum and SetLeader.
func New(cfg Config) *Gatherer {
	cfg = cfg.withDefaults()
	g := &Gatherer{cfg: cfg, made: time.Now()}
	g.sender.g = g
	g.reach.init(cfg.LeaderWait, g.unreachable)
	g.start(g.sender.run)
	g.expiring.Go(g.expire)
	return g
}

// Propose commits one operation and returns the state machine's result. The operation
// must not be changed, even after Propose has returned. Its errors are *outcome.Error:
// NotApplied if the operation is in no log and never will be, Unknown otherwise. ctx
// bounds the wait; if it ends while the operation is queued, the operation is in no log.
func (g *Gatherer) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	if cost(operation) > g.cfg.MaxGroupBytes {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, outcome.NewNotApplied(outcome.Deadline, err)
	}
	w := g.waiter(ctx, operation)
	if err := g.enqueue(w); err != nil {
		g.pool.put(w)
		return nil, err
	}
	if err := g.await(ctx, w); err != nil {
		return nil, err
	}
	result, err := w.result, w.err
	g.pool.put(w)
	return result, err
}

// ProposeAll commits several operations and returns the outcome of each, in their order: a
// result, or an error as of Propose. The operations are queued in one step, so that they
// share a group if they fit, but stay independent: each is refused or applied by itself. It
// has Propose's rules for operations and ctx.
func (g *Gatherer) ProposeAll(ctx context.Context, operations [][]byte) (results [][]byte, errs []error) {
	results, errs = make([][]byte, len(operations)), make([]error, len(operations))
	if err := ctx.Err(); err != nil {
		for i := range errs {
			errs[i] = outcome.NewNotApplied(outcome.Deadline, err)
		}
		return results, errs
	}
	waiters := make([]*waiter, len(operations))
	for i, operation := range operations {
		waiters[i] = g.waiter(ctx, operation)
	}
	g.enqueueAll(waiters, errs)
	for i, w := range waiters {
		if errs[i] != nil {
			g.pool.put(w)
			continue
		}
		if errs[i] = g.await(ctx, w); errs[i] == nil {
			results[i], errs[i] = w.result, w.err
			g.pool.put(w)
		}
	}
	return results, errs
}

func (g *Gatherer) enqueueAll(waiters []*waiter, errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range waiters {
		if cost(w.operation) > g.cfg.MaxGroupBytes {
			errs[i] = outcome.NewNotApplied(outcome.TooLarge, nil)
			continue
		}
		errs[i] = g.admit(w)
	}
	g.wake()
}

func (g *Gatherer) waiter(ctx context.Context, operation []byte) *waiter {
	w := g.pool.get(ctx, operation)
	w.resultBound = g.cfg.ResultBound(operation)
	return w
}

// await waits until w is answered. An error means that ctx ended first; then w no longer
// belongs to the caller.
func (g *Gatherer) await(ctx context.Context, w *waiter) error {
	cancelled := ctx.Done()
	if cancelled == nil {
		// A plain receive costs half as much as a select.
		<-w.done
		return nil
	}
	select {
	case <-w.done:
		return nil
	case <-cancelled:
		return g.leave(w, ctx.Err())
	}
}

func (g *Gatherer) enqueue(w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.admit(w); err != nil {
		return err
	}
	g.wake()
	return nil
}

// admit puts w into the queue, or returns why not. The caller holds the lock.
func (g *Gatherer) admit(w *waiter) error {
	if err := g.refusal(); err != nil {
		return err
	}
	if g.waiting.length >= g.cfg.QueueLength || g.waiting.bytes+cost(w.operation) > g.cfg.QueueBytes {
		return outcome.NewNotApplied(outcome.Overloaded, nil)
	}
	w.enqueuedAt = g.clock()
	if g.waiting.length == 0 {
		g.waiting.since = time.Now()
	}
	g.waiting.push(w)
	return nil
}

// wake wakes the group sender if there is a group for it. The caller holds the lock.
func (g *Gatherer) wake() {
	if g.gathered() {
		g.work.Signal()
	}
}

// refusal returns why the Gatherer accepts no operation now, or nil.
func (g *Gatherer) refusal() error {
	if g.closing {
		return outcome.NewNotApplied(outcome.Stopping, nil)
	}
	if g.reach.expired {
		return outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	return nil
}

// leave removes w because its caller no longer waits. It returns nil if w was answered in
// the meantime: then the answer counts.
func (g *Gatherer) leave(w *waiter, cause error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done:
		return nil
	default:
	}
	if w.state == queued {
		g.waiting.remove(w)
		g.pool.put(w)
		if g.closing {
			g.work.Signal()
		}
		return Abandoned(false, cause)
	}
	// The group still refers to w, so it does not go back to the pool.
	w.state = abandoned
	return Abandoned(true, cause)
}

// Close refuses new operations, commits the queued ones, and waits for groups in flight,
// until ctx ends. Then the rest fails: operations in no group with NotApplied(Stopping),
// others with Unknown(Stopping). Their callers do not wait for Send and Open to return;
// Close does. It may be called more than once; each call waits.
func (g *Gatherer) Close(ctx context.Context) {
	g.close(ctx, g.stop)
	g.expiring.Wait()
}

func (g *Gatherer) stop() {
	g.mu.Lock()
	g.stopped = true
	waiting, inFlight := g.waiting.drain(), g.sender.abandon()
	g.reach.stop()
	g.linger.stop()
	g.work.Signal()
	g.mu.Unlock()
	g.haltNow()
	g.fail(waiting, outcome.NewNotApplied(outcome.Stopping, nil))
	g.fail(inFlight, outcome.NewUnknown(outcome.Stopping, nil))
}

func (g *Gatherer) fail(waiters []*waiter, err error) {
	if len(waiters) == 0 {
		return
	}
	g.cfg.Events.GivenUp(len(waiters), err)
	for _, w := range waiters {
		w.answer(nil, err)
	}
}
