package generator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// After a failed attempt to fetch a range in the background, the next one follows
// after a pause between these two, doubled each time. It is of no use to be much
// faster than an election, and when the current range ends meanwhile, whoever needs a
// number does not wait for the pause.
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

// prefetch has the range after s fetched in the background. Whoever took the number
// at the half of s can be late: s may have come to its end meanwhile.
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
	g.next = Request{LastSize: r.Granted, LastRangeAt: r.At, LastMax: r.High}
	if r.Granted == 0 {
		g.next.LastSize = r.Size()
	}
	return newHeldRange(r), nil
}

// deliver hands a new range to those who wait, or keeps it for those who come. It reports
// whether the fetcher is to bring another.
func (g *Generator) deliver(s *heldRange) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.idle() {
		g.ahead, g.fetcher = s, nil
		return false
	}
	// Nobody else sees s yet. So if somebody still waits, all of it went to the queue,
	// and so did its half.
	more = g.queue.serve(s)
	g.current.Store(s)
	if !more {
		g.fetcher = nil
	}
	return more
}

// fail tells those who wait that there is no range. It returns what ends the rest before
// the next attempt, or nil if there is to be none: a generator without a number left,
// such as a closed one, asks when a caller comes, so that one that nobody uses does not
// ask permanently.
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

// rest waits for up to the pause, less if somebody wants a number or Close begins. It
// reports whether the fetcher is to go on.
//
// The pause varies by half, so that the clients of a cluster that comes back do not
// come all at once.
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
