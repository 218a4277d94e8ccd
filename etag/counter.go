package etag

import "sync/atomic"

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

	// want is the number of etags that callers wait for.
	want uint64
	// moved is closed when limit has moved, or never will; nil without waiters.
	moved chan struct{}
	final uint64
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
	for {
		// A stale limit is only ever too low, so the two loads need not agree.
		limit := c.limit.Load()
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

// seal ends the counter: no value is taken afterwards.
func (c *counter) seal() {
	c.final = c.last.Swap(sealed)
	c.wakeWaiters()
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
// values, or, if callers wait for more than that, a full block above their demand.
func (c *counter) target(block uint64) uint64 {
	last := c.last.Load()
	limit := max(c.limit.Load(), last) + block
	if wanted := last + c.want; wanted > limit {
		limit = wanted + block
	}
	return min(limit, MaxEtag)
}

// wait returns the channel that is closed when limit has moved.
func (c *counter) wait() <-chan struct{} {
	if c.moved == nil {
		c.moved = make(chan struct{})
	}
	return c.moved
}

func (c *counter) wakeWaiters() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}
