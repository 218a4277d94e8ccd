// Package generator makes Snowflake ids from the windows of a leased worker, without a call for
// each id. It needs no network: its Source leases. Its tests over the pool of the servers are in
// worker. It is for idnode's own use: its names may change with any release.
package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/client/snowflake"
)

const (
	// MaxCount is the greatest number of ids of one call.
	MaxCount = 10_000
	// ahead is how far the times of ids may run before the clock, so that a burst of more than a
	// unit's ids need not wait for each unit.
	ahead = 100 * time.Millisecond
	// DefaultTimeout bounds a call of the source, and the wait for the begin of a window. It is
	// longer than an election.
	DefaultTimeout = 10 * time.Second
)

// Lease is a worker with its window.
type Lease struct {
	Layout snowflake.Layout
	Worker int
	// Token proves ownership. It is opaque.
	Token string
	// From is the first time of the window, and Until the first after it, in units of the layout.
	From, Until int64
}

// Source leases the worker of one pool. Its methods may be called from any goroutine.
type Source interface {
	// Acquire leases a worker for a holder whose clock shows now.
	Acquire(ctx context.Context, now time.Time) (Lease, error)
	// Renew returns the new end of a lease's window.
	Renew(ctx context.Context, l Lease, now time.Time) (until int64, err error)
	// Release frees the rest of a window: no id has next, or a later time.
	Release(ctx context.Context, l Lease, next int64) error
}

// ErrClosed is the error of a generator that is closed.
var ErrClosed = errors.New("generator: closed")

// ErrCount is the error of a count that is out of range.
var ErrCount = fmt.Errorf("generator: the count must be from 1 to %d", MaxCount)

// EarlyError says that the window begins too far in the future to wait for it.
type EarlyError struct {
	// By is how long before the window the clock is.
	By time.Duration
}

func (e *EarlyError) Error() string {
	return fmt.Sprintf("the window of the lease begins in %s: another may still make ids until then, or the clock is late", e.By)
}

// Generator makes the ids of a pool. It is safe for concurrent use. The caller must Close it, which
// frees its worker.
//
// Invariants: each id has a time inside of a window of the worker that it has; the ids of one lease
// rise.
type Generator struct {
	source  Source
	timeout time.Duration
	// wall is the clock of this machine.
	wall  func() time.Time
	clock atomic.Pointer[reading]
	held  atomic.Pointer[held]
	// layout is that of the newest lease.
	layout atomic.Pointer[snowflake.Layout]
	// turn is held by whoever leases, and renewing by the renewal under way.
	turn, renewing chan struct{}
	life           context.Context // ends with Close
	cancel         context.CancelFunc
}

// reading is the wall clock when it was read last. Time goes on from there by the monotonic clock, so
// that a wall clock that is set changes nothing in the middle of a window.
type reading struct {
	// wall has no monotonic clock, which would be compared instead. at has one.
	wall, at time.Time
}

// held is a lease in use.
type held struct {
	Lease
	// last is the newest id, without the worker's bits.
	last atomic.Int64
	// until is the end of the window now, and renewAt when it is to be renewed, in units.
	until, renewAt atomic.Int64
}

// New returns a generator. timeout is as DefaultTimeout; 0 means that.
func New(source Source, timeout time.Duration) *Generator {
	timeout = cmp.Or(timeout, DefaultTimeout)
	g := &Generator{source: source, timeout: timeout, wall: time.Now, turn: make(chan struct{}, 1), renewing: make(chan struct{}, 1)}
	g.life, g.cancel = context.WithCancel(context.Background())
	g.setClock()
	return g
}

// Next makes an id. It waits where there is no window, where the window begins later, and where the
// ids of the times up to now are used up. A call with an error has made no id.
//
// The error is ctx's, ErrClosed, an *EarlyError, or the source's.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	for {
		h := g.held.Load()
		if h == nil {
			if err := g.lease(ctx, nil); err != nil {
				return 0, err
			}
			continue
		}
		now := g.units(h)
		id, wait, ok := h.take(now)
		if ok {
			if now >= h.renewAt.Load() {
				g.renew(h)
			}
			return id, nil
		}
		if wait == 0 {
			if err := g.lease(ctx, h); err != nil {
				return 0, err
			}
		} else if err := g.sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// NextN makes n ids (1 … MaxCount), which rise. The errors are those of Next, and ErrCount. With an
// error it returns the ids made before; they belong to the caller.
func (g *Generator) NextN(ctx context.Context, n int) ([]int64, error) {
	if n < 1 || n > MaxCount {
		return nil, ErrCount
	}
	ids := make([]int64, 0, n)
	for len(ids) < n {
		id, err := g.Next(ctx)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// take makes an id. If it cannot, it returns how long to wait; 0 if the window has passed.
func (h *held) take(now int64) (id int64, wait time.Duration, ok bool) {
	l, bits := &h.Layout, h.Layout.SequenceBits
	for {
		last := h.last.Load()
		next := max(last+1, now<<bits)
		units := next >> bits
		if units >= h.until.Load() {
			return 0, 0, false
		}
		if early := time.Duration((units-now)*l.Unit) * time.Millisecond; early > ahead {
			return 0, max(early-ahead, time.Millisecond), false
		}
		if h.last.CompareAndSwap(last, next) {
			return l.ID(units, h.Worker, next&(l.Sequences()-1)), 0, true
		}
	}
}

// Layout returns the layout of the pool; false if nothing was leased yet.
func (g *Generator) Layout() (snowflake.Layout, bool) {
	l := g.layout.Load()
	if l == nil {
		return snowflake.Layout{}, false
	}
	return *l, true
}

// Passed reports whether there is no window now: the next id needs a call.
func (g *Generator) Passed() bool {
	h := g.held.Load()
	return h == nil || g.units(h) >= h.until.Load()
}

// sleep waits for a time that is near enough.
func (g *Generator) sleep(ctx context.Context, d time.Duration) error {
	if d > g.timeout {
		return &EarlyError{d}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.life.Done():
		return ErrClosed
	}
}

// now is the time by the monotonic clock.
func (g *Generator) now() time.Time {
	read := g.clock.Load()
	return read.wall.Add(time.Since(read.at))
}

// units is the time in units of a lease's layout.
func (g *Generator) units(h *held) int64 { return h.Layout.At(g.now().UnixMilli()) }

// setClock reads the wall clock.
func (g *Generator) setClock() {
	g.clock.Store(&reading{g.wall().Round(0), time.Now()})
}

// lease replaces a lease whose window has passed; nil is none. One caller leases for all.
func (g *Generator) lease(ctx context.Context, passed *held) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return ctx.Err()
	case <-g.life.Done():
		return ErrClosed
	}
	if g.held.Load() != passed {
		return nil
	}
	if g.life.Err() != nil {
		return ErrClosed
	}
	// A window that has passed does not come again, though the wall clock may be set back now.
	g.held.Store(nil)
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	g.setClock()
	l, err := g.source.Acquire(ctx, g.now())
	if err != nil {
		return err
	}
	g.layout.Store(&l.Layout)
	h := &held{Lease: l}
	h.last.Store(l.From<<l.Layout.SequenceBits - 1)
	h.until.Store(l.Until)
	h.renewAt.Store(l.From + (l.Until-l.From)/2)
	g.held.Store(h)
	return nil
}

// renew renews a window beside the calls, at half of its time. After a failure it is tried again at a
// tenth of the rest.
func (g *Generator) renew(h *held) {
	select {
	case g.renewing <- struct{}{}:
	default:
		return
	}
	if g.life.Err() != nil { // Close waits for no renewal that begins now.
		<-g.renewing
		return
	}
	go func() {
		defer func() { <-g.renewing }()
		ctx, cancel := context.WithTimeout(g.life, g.timeout)
		defer cancel()
		if g.wall().Round(0).After(g.now()) {
			g.setClock() // The machine may have slept.
		}
		until, err := g.source.Renew(ctx, h.Lease, g.now())
		now, part := g.units(h), int64(2)
		if err == nil {
			h.until.Store(max(until, h.until.Load()))
		} else {
			part = 10
		}
		h.renewAt.Store(now + (h.until.Load()-now)/part)
	}()
}

// closed is the last id of a lease that is given back: none follows it.
const closed = math.MaxInt64 - 1

// Close ends all calls, and frees the worker. It returns the source's error of that, or ctx's; a
// further call returns nil.
func (g *Generator) Close(ctx context.Context) error {
	g.cancel()
	for _, busy := range []chan struct{}{g.renewing, g.turn} {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h := g.held.Load()
	if h == nil {
		return nil
	}
	last := h.last.Swap(closed)
	if last == closed {
		return nil
	}
	return g.source.Release(ctx, h.Lease, last>>h.Layout.SequenceBits+1)
}
