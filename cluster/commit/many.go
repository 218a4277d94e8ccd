package commit

import (
	"context"

	"github.com/idnode/idnode/internal/outcome"
)

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

// enqueueAll queues waiters for a group; errs gets the reason of each refusal.
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
