package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Bounds of the pause between failed attempts to fetch a range in the background; it doubles
// each time. Retrying much faster than an election is useless, and a caller that finds no
// number does not wait for the pause.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// prefetch starts the fetch of the range after s in the background. The caller that took
// the number at the half of s may be late: s may be used up by now.
func (g *Generator) prefetch(s *heldRange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current.Load() == s {
		g.prefetchLocked()
	}
}

// prefetchLocked starts a fetcher, unless there is a range ahead or in flight: a second
// fetcher would replace the first one's range.
func (g *Generator) prefetchLocked() {
	if !g.closed && g.ahead == nil && g.fetcher == nil {
		g.startFetcher()
	}
}

// hurry has a range fetched at once, even if the fetcher is pausing.
func (g *Generator) hurry() {
	if g.fetcher == nil {
		g.startFetcher()
	}
	g.endPause()
}

// endPause ends the fetcher's pause, if it is in one.
func (g *Generator) endPause() {
	if g.wake != nil {
		close(g.wake)
		g.wake = nil
	}
}

func (g *Generator) startFetcher() {
	ended := make(chan struct{})
	g.fetcher = ended
	go func() {
		defer close(ended)
		g.fetch()
	}()
}

// fetch fetches ranges until there is a range ahead. Close waits for its end.
func (g *Generator) fetch() {
	pause := firstPause
	for {
		s, err := g.ask()
		var more bool
		if err == nil {
			more, pause = g.deliver(s), firstPause
		} else if wake := g.fail(err); wake != nil {
			more = g.rest(wake, pause)
			pause = min(2*pause, maxPause)
		}
		if !more {
			return
		}
	}
}

// ask calls the source for one range.
func (g *Generator) ask() (*heldRange, error) {
	ctx, cancel := context.WithTimeout(g.life, g.timeout)
	defer cancel()
	r, err := g.source.Next(ctx, g.next)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("generator: no range within %v: %w", g.timeout, err)
		}
		return nil, err
	}
	if err := check(r, g.next.LastMax); err != nil {
		return nil, err
	}
	g.next = Request{LastSize: cmp.Or(r.Granted, r.Size()), LastRangeAt: r.At, LastMax: max(g.next.LastMax, r.High)}
	return newHeldRange(r), nil
}

// deliver hands a new range to the waiting callers, or keeps it for later callers. It
// reports whether the fetcher must fetch another range.
func (g *Generator) deliver(s *heldRange) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.idle() {
		g.ahead, g.fetcher = s, nil
		return false
	}
	// s is not shared yet. So if a caller still waits, the queue took all of s, including
	// its half.
	more = g.queue.serve(s)
	g.current.Store(s)
	if !more {
		g.fetcher = nil
	}
	return more
}

// fail answers the waiting callers with an error. It returns the channel that ends the pause
// before the next attempt, or nil if no attempt follows: a generator without numbers, such as
// a closed one, fetches when a caller arrives, so that an unused generator does not fetch
// permanently.
func (g *Generator) fail(err error) (wake <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.refuse(err)
	if g.current.Load().empty() {
		g.fetcher = nil
		return nil
	}
	g.wake = make(chan struct{})
	return g.wake
}

// rest waits for up to the pause, less if a caller wants a number or Close begins. It
// reports whether the fetcher continues.
//
// The pause varies by half, so that the clients of a recovered cluster do not all call at
// the same time.
func (g *Generator) rest(wake <-chan struct{}, pause time.Duration) (more bool) {
	timer := time.NewTimer(pause/2 + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wake = nil
	return !g.closed
}
