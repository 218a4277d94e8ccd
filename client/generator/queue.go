package generator

import (
	"container/list"
	"context"
)

// queue holds the callers that wait for numbers, in order of arrival. Numbers are handed to
// them, instead of waking all waiters for a few numbers: no caller starves, and a range of
// one number wakes one caller of a thousand.
type queue struct {
	list list.List // of *waiter
}

// waiter is a caller that waits for up to n numbers.
type waiter struct {
	n       uint64
	got     chan grant // has capacity 1
	element *list.Element
}

// grant is the outcome of a waiter: numbers, or an error.
type grant struct {
	block
	err error
}

func (q *queue) join(n uint64) *waiter {
	w := &waiter{n: n, got: make(chan grant, 1)}
	w.element = q.list.PushBack(w)
	return w
}

// leave removes a waiter. It reports whether the waiter was still in the queue; otherwise
// its grant has arrived.
func (q *queue) leave(w *waiter) bool {
	if w.element == nil {
		return false
	}
	q.list.Remove(w.element)
	w.element = nil
	return true
}

// serve hands the range's numbers to the waiters, as far as they go. half reports whether
// the next range is to be fetched after them.
func (q *queue) serve(s *heldRange) (half bool) {
	for !q.idle() && !s.empty() {
		w := q.list.Front().Value.(*waiter)
		b, h := s.take(w.n)
		half = half || h
		q.answer(w, grant{block: b})
	}
	return half
}

// refuse answers all waiters with an error.
func (q *queue) refuse(err error) {
	for !q.idle() {
		q.answer(q.list.Front().Value.(*waiter), grant{err: err})
	}
}

func (q *queue) answer(w *waiter, a grant) {
	q.leave(w)
	w.got <- a
}

func (q *queue) idle() bool { return q.list.Len() == 0 }

// wait takes 1 to n numbers of the next range, for a caller that found the current range
// empty.
func (g *Generator) wait(ctx context.Context, n uint64) (block, error) {
	b, w, err := g.takeOrJoin(ctx, n)
	if w == nil {
		return b, err
	}
	select {
	case a := <-w.got:
		return a.block, a.err
	case <-ctx.Done():
		return g.giveUp(ctx, w)
	}
}

// takeOrJoin takes numbers of a range that has arrived in the meantime. If there is none, it
// returns a waiter that has joined the queue, unless ctx has ended.
func (g *Generator) takeOrJoin(ctx context.Context, n uint64) (block, *waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return block{}, nil, ErrClosed
	}
	if b := g.takeLocked(n); b.n > 0 {
		return b, nil, nil
	}
	if g.ahead != nil {
		g.current.Store(g.ahead)
		g.ahead = nil
		if b := g.takeLocked(n); b.n > 0 {
			return b, nil, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return block{}, nil, err
	}
	w := g.queue.join(n)
	g.hurry()
	return block{}, w, nil
}

// takeLocked takes up to n numbers of the current range.
func (g *Generator) takeLocked(n uint64) block {
	b, half := g.current.Load().take(n)
	if half {
		g.prefetchLocked()
	}
	return b
}

// giveUp ends the wait of a caller whose context ended. If a grant arrived at the same time,
// the caller keeps it, so that no number is lost.
func (g *Generator) giveUp(ctx context.Context, w *waiter) (block, error) {
	g.mu.Lock()
	left := g.queue.leave(w)
	g.mu.Unlock()
	if left {
		return block{}, ctx.Err()
	}
	a := <-w.got
	return a.block, a.err
}
