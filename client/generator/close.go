package generator

import (
	"context"
	"errors"
)

// Close ends the generator and returns the unused numbers to the cluster: first those of
// the range ahead, then the rest of the current range, since only the newest range of a tag
// can be given back. If no other client got a range of the tag in between, no gap is left.
//
// Once Close has begun, all other calls fail with ErrClosed; a number that is taken
// concurrently is either given out or returned. Close waits for a range that is being
// fetched, to return it too. Close ends with ctx: numbers that are not returned by then
// are a gap. Without a deadline each of these steps is bounded by Config.Timeout.
//
// When Close has returned, no goroutine of the generator is left. The error joins the
// source's errors; the generator is closed in any case. Every further Close waits for the
// first and returns its error. Close is safe for concurrent use.
func (g *Generator) Close(ctx context.Context) error {
	last, first := g.shut()
	if !first {
		return g.closedBy(ctx)
	}
	if g.closeErr = g.joinFetcher(ctx); g.closeErr == nil {
		g.closeErr = g.giveBack(ctx, last)
	}
	g.cancel()
	close(g.gone)
	return g.closeErr
}

// shut ends the taking of numbers. It returns the last number taken of the current range,
// and whether this was the first call.
func (g *Generator) shut() (last int64, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, false
	}
	g.closed = true
	g.endPause()
	g.queue.refuse(ErrClosed)
	return g.current.Load().exhaust(), true
}

// closedBy waits for the first Close.
func (g *Generator) closedBy(ctx context.Context) error {
	select {
	case <-g.gone:
		return g.closeErr
	default:
	}
	select {
	case <-g.gone:
		return g.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// joinFetcher waits for the end of the fetcher. When ctx ends it cancels the source's call,
// and waits for the fetcher to end soon after, so that no goroutine is left.
func (g *Generator) joinFetcher(ctx context.Context) error {
	g.mu.Lock()
	f := g.fetcher
	g.mu.Unlock()
	if f == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, g.cancel)
	<-f
	if stop() {
		return nil
	}
	return ctx.Err()
}

// giveBack returns the unused numbers to the source; last is the last number taken of the
// current range. A failed return does not prevent the other: its outcome may be unknown, and
// a return out of order has no effect.
func (g *Generator) giveBack(ctx context.Context, last int64) error {
	g.mu.Lock()
	ahead, current := g.ahead, g.current.Load()
	g.ahead = nil
	g.mu.Unlock()
	var errs []error
	if ahead != nil {
		errs = append(errs, g.giveBackOne(ctx, ahead.Range, ahead.Low-1))
	}
	if current.size > 0 && last < current.High {
		errs = append(errs, g.giveBackOne(ctx, current.Range, last))
	}
	return errors.Join(errs...)
}

func (g *Generator) giveBackOne(ctx context.Context, r Range, last int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return g.source.Return(ctx, r, last)
}
