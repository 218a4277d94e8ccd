package generator

import (
	"context"
	"errors"
)

// Close ends the generator and gives the numbers that nobody took back to the
// cluster: first those of the range ahead, then the rest of the current one, since
// only the newest range of a tag can be given back. If nobody else got a range of the
// tag meanwhile, no hole is left.
//
// From its beginning on all other calls fail with ErrClosed; a number that somebody
// takes at the same moment is either given out or given back. A range that is being
// fetched is waited for, so that it can be given back too. When ctx ends, Close
// does: what was not given back by then is a hole. Without a deadline each of these
// steps is bounded by the Config's Timeout.
//
// When Close has returned, no goroutine of the generator is left. The error joins what
// the source said; the generator is closed anyway. Every further Close waits for the
// first one and returns its error.
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

// shut lets nobody take another number. It returns the last one that was taken of the
// current range, and reports whether this was the first call.
func (g *Generator) shut() (last int64, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, false
	}
	g.closed = true
	close(g.closing)
	g.queue.refuse(ErrClosed)
	return g.current.Load().exhaust(), true
}

// closedBy waits for the Close that came first.
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

// joinFetcher waits for the end of the fetcher. When ctx ends it cancels the call of
// the source, which then ends soon: waiting for that keeps the promise that no
// goroutine is left.
func (g *Generator) joinFetcher(ctx context.Context) error {
	g.mu.Lock()
	f := g.fetcher
	g.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		g.cancel()
		<-f.done
		return ctx.Err()
	}
}

// giveBack returns what is left to the source; last is the last number taken of the
// current range. One failed return does not stop the other: its outcome may be
// unknown, and a return that comes in the wrong order does nothing.
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
