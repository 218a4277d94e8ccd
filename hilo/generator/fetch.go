package generator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// After a failed attempt to fetch a range in the background, the next one follows after a
// pause between these two, doubled each time. Being much faster than an election is
// useless, and if the current range ends, a caller does not wait for the pause.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// fetcher is a goroutine that fetches ranges until there is one ahead. A generator
// has one at most.
type fetcher struct {
	done chan struct{} // closed when the goroutine ends
	// wake is closed to end a rest; nil while there is none. The generator's mu guards
	// it.
	wake chan struct{}
}

// prefetch starts the fetch of the range after s in the background. The caller that took
// the number at the half of s can be late: s may be used up by now.
func (g *Generator) prefetch(s *heldRange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current.Load() == s {
		g.prefetchLocked()
	}
}

// prefetchLocked starts a fetcher, unless its range is there or in flight: a second one
// would put its range into the place of the first one's.
func (g *Generator) prefetchLocked() {
	if !g.closed && g.ahead == nil && g.fetcher == nil {
		g.startFetcher()
	}
}

// hurry has a range fetched at once, also if the fetcher is resting.
func (g *Generator) hurry() {
	switch {
	case g.fetcher == nil:
		g.startFetcher()
	case g.fetcher.wake != nil:
		close(g.fetcher.wake)
		g.fetcher.wake = nil
	}
}

func (g *Generator) startFetcher() {
	f := &fetcher{done: make(chan struct{})}
	g.fetcher = f
	go g.fetch(f)
}

// fetch is the fetcher's goroutine. Close waits for its end.
func (g *Generator) fetch(f *fetcher) {
	defer close(f.done)
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
	g.next = Request{LastSize: r.Granted, LastRangeAt: r.At, LastMax: max(g.next.LastMax, r.High)}
	if r.Granted == 0 {
		g.next.LastSize = r.Size()
	}
	return newHeldRange(r), nil
}

// deliver hands a new range to the waiting callers, or keeps it for later ones. It
// reports whether the fetcher must fetch another.
func (g *Generator) deliver(s *heldRange) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.idle() {
		g.ahead, g.fetcher = s, nil
		return false
	}
	// s is not shared yet. So if a caller still waits, all of it went to the queue, and
	// so did its half.
	more = g.queue.serve(s)
	g.current.Store(s)
	if !more {
		g.fetcher = nil
	}
	return more
}

// fail answers the waiting callers with an error. It returns the channel that ends the
// pause before the next attempt, or nil if there is none: a generator without numbers,
// such as a closed one, fetches when a caller comes, so that an unused one does not fetch
// permanently.
func (g *Generator) fail(err error) (wake <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.refuse(err)
	if g.current.Load().empty() {
		g.fetcher = nil
		return nil
	}
	g.fetcher.wake = make(chan struct{})
	return g.fetcher.wake
}

// rest waits for up to the pause, less if a caller wants a number or Close begins. It
// reports whether the fetcher continues.
//
// The pause varies by half, so that the clients of a recovered cluster do not all call at
// once.
func (g *Generator) rest(wake <-chan struct{}, pause time.Duration) (more bool) {
	timer := time.NewTimer(pause/2 + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-g.closing:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fetcher.wake = nil
	if g.closed {
		g.fetcher = nil
	}
	return !g.closed
}
