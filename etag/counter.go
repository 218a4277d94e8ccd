package etag

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// sealed is the value of counter.last once no etag may be taken. It is above every limit,
// so that the fast path needs no other check.
const sealed uint64 = 1 << 63

// counter is one database's counter.
//
// The fast path is not a single atomic add, because an add that overshoots the reserved
// block has already moved the counter: the values in between are lost, and the exact last
// value at a clean stop is unknown. Compare-and-swap costs the same without contention,
// and loses neither.
//
// Invariant: limit never falls, and every value handed out is at most a limit that was
// durable before. Invariant: last never falls, until seal replaces it.
type counter struct {
	// last is the last etag handed out, or sealed.
	last atomic.Uint64
	// limit is the end of the block that is reserved on disk.
	limit atomic.Uint64
	// queued means that a reservation is requested or in progress. It stays true once
	// limit is MaxEtag, because no more can be reserved.
	queued atomic.Bool

	name string

	// The fields below are guarded by Counters.mu.

	// waiters are the callers that wait for the disk, in the order in which they came.
	waiters []*waiter
	final   uint64
}

// waiter is a caller that waits for n etags. first and err are set before served is closed.
type waiter struct {
	n, first uint64
	err      error
	served   chan struct{}
}

func newCounter(name string, value uint64) *counter {
	c := &counter{name: name}
	c.last.Store(value)
	c.setLimit(value)
	return c
}

// take hands out n consecutive values from the reserved block and returns the first;
// remaining is the rest of the block. It returns ok = false, and takes nothing, if the
// block is too short or the counter is sealed.
func (c *counter) take(n uint64) (first, remaining uint64, ok bool) {
	// A stale limit is only ever too low, so it need not agree with the counter.
	return c.takeBelow(c.limit.Load(), n)
}

func (c *counter) takeBelow(limit, n uint64) (first, remaining uint64, ok bool) {
	for {
		last := c.last.Load()
		if last+n > limit {
			return 0, 0, false
		}
		if c.last.CompareAndSwap(last, last+n) {
			return last + 1, limit - last - n, true
		}
	}
}

func (c *counter) raise(floor uint64) bool {
	for {
		last := c.last.Load()
		if last >= floor {
			return false
		}
		if c.last.CompareAndSwap(last, floor) {
			return true
		}
	}
}

// seal ends the counter: no value is taken afterwards, and those that wait get err.
func (c *counter) seal(err error) {
	c.final = c.last.Swap(sealed)
	for _, w := range c.waiters {
		w.err = err
		close(w.served)
	}
	c.waiters = nil
}

// used returns the last etag handed out. It works after seal too.
func (c *counter) used() uint64 {
	if last := c.last.Load(); last != sealed {
		return last
	}
	return c.final
}

// end returns the end of what is used or reserved; 0 if the disk does not have the counter.
func (c *counter) end() uint64 { return max(c.used(), c.limit.Load()) }

func (c *counter) setLimit(limit uint64) {
	c.limit.Store(limit)
	c.queued.Store(limit == MaxEtag)
}

// target returns the limit to reserve next: a full block above the reserved and the used
// values, or, if callers wait for more than that, a full block above their demand. So one
// reservation serves each caller that waits when it begins: until it ends nothing above the
// old limit is taken.
func (c *counter) target(block uint64) uint64 {
	var want uint64
	for _, w := range c.waiters {
		want += w.n
	}
	if want > block {
		block += want
	}
	return min(max(c.limit.Load(), c.last.Load())+block, MaxEtag)
}

// reserved serves the waiters in their order from a block that ends at limit, and then
// publishes the limit, so that no other caller is before them. A waiter is left over only if
// the counter was raised meanwhile.
func (c *counter) reserved(limit uint64) {
	for len(c.waiters) > 0 && c.serve(c.waiters[0], limit) {
		c.waiters = c.waiters[1:]
	}
	c.setLimit(limit)
}

func (c *counter) serve(w *waiter, limit uint64) (served bool) {
	if w.first, _, served = c.takeBelow(limit, w.n); !served {
		if w.err = c.exhausted(w.n); w.err == nil {
			return false
		}
	}
	close(w.served)
	return true
}

// exhausted returns ErrExhausted if fewer than n etags are left.
func (c *counter) exhausted(n uint64) error {
	if left := MaxEtag - c.last.Load(); n > left {
		return fmt.Errorf("%w: %d left in %q", ErrExhausted, left, c.name)
	}
	return nil
}

// leave takes a waiter out that was not served, and reports whether it was there.
func (c *counter) leave(w *waiter) bool {
	i := slices.Index(c.waiters, w)
	if i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	return i >= 0
}
