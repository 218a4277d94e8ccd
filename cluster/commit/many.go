package commit

import (
	"context"

	"github.com/idnode/idnode/internal/outcome"
)

// ProposeAll commits several operations and returns, in their order, the outcome of each:
// a result, or an error as of Propose. They are queued together, so that they share a
// group, but stay independent: some may be refused, or get into another group, and each
// takes effect alone.
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

// enqueueAll queues waiters for a group. An error is why one was refused.
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
