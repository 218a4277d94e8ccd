package etag

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Counters hands out etags, one counter per database. It is safe for concurrent use.
type Counters struct {
	cfg Config
	// lowWater is the rest of a block, in etags, at which the next block is reserved. Half a
	// block leaves the disk as much time as the first half lasted.
	lowWater uint64
	store    Store
	opened   Stored

	// counters is replaced as a whole when a database is added, so that the fast path finds
	// its counter without a lock.
	counters atomic.Pointer[map[string]*counter]

	wake     chan struct{} // holds one token when the reserver has work
	reserved chan struct{} // holds one token when Reserved has changed
	broken   chan struct{} // closed when a durable write has failed
	done     chan struct{} // closed when the reserver has ended
	closeErr error         // what Close returns; set before done is closed

	mu sync.Mutex
	// err is ErrBroken or ErrClosed once no etag is handed out any more.
	err     error
	closing bool
	queue   []*counter
	// floor is where counters of new databases start.
	floor uint64
	// start is the recorded start number, wantStart the number to record.
	wantStart, start uint64
	startMoved       chan struct{}
}

// Open starts the counters from store's state: exactly there after a clean stop, above the
// reserved blocks otherwise. The counters own the store from then on; if Open fails, the
// caller still owns it. Open writes nothing: a node that starts and hands out no etag leaves
// the disk unchanged.
func Open(store Store, cfg Config) (*Counters, error) {
	state, err := store.Load()
	if err != nil {
		return nil, fmt.Errorf("etag: load: %w", err)
	}
	if err := state.validate(); err != nil {
		return nil, err
	}
	c := newCounters(store, cfg.withDefaults(), state)
	go c.reserveLoop()
	return c, nil
}

func newCounters(store Store, cfg Config, state Stored) *Counters {
	byName := make(map[string]*counter, len(state.Databases))
	for name, value := range state.Databases {
		byName[name] = newCounter(name, value)
	}
	c := &Counters{
		cfg:      cfg,
		lowWater: (cfg.BlockSize + 1) / 2,
		store:    store,
		opened:   state.clone(),
		wake:     make(chan struct{}, 1),
		reserved: make(chan struct{}, 1),
		broken:   make(chan struct{}),
		done:     make(chan struct{}),
		start:    state.Start,
	}
	c.counters.Store(&byName)
	return c
}

// Next returns the next etag of a database, whose name is folded. The errors are
// ErrExhausted, ErrTooManyDatabases, ErrDatabase, ErrStalled, ErrClosed and ErrBroken; no
// etag was handed out then.
func (c *Counters) Next(database string) (uint64, error) {
	return c.NextBlock(database, 1)
}

// NextBlock hands out n consecutive etags, 1 to MaxBlock, and returns the
// first. Its errors are those of Next, and ErrCount.
func (c *Counters) NextBlock(database string, n int) (first uint64, err error) {
	if n < 1 || n > MaxBlock {
		return 0, fmt.Errorf("%w: %d is not in 1 to %d", ErrCount, n, MaxBlock)
	}
	ctr, ok := (*c.counters.Load())[database]
	if !ok {
		if ctr, err = c.add(database, c.cfg.MaxDatabases()); err != nil {
			return 0, err
		}
	}
	first, remaining, ok := ctr.take(uint64(n))
	if !ok {
		return c.takeSlowly(ctr, uint64(n))
	}
	if remaining < c.lowWater && !ctr.queued.Load() {
		c.enqueue(ctr)
	}
	return first, nil
}

// Has reports whether a database has a counter. It does not block.
func (c *Counters) Has(database string) bool {
	_, ok := (*c.counters.Load())[database]
	return ok
}

// add returns the counter of a database, and adds it if needed and at most limit databases
// then exist.
func (c *Counters) add(database string, limit int) (*counter, error) {
	if database == "" || len(database) > maxDatabaseBytes {
		return nil, fmt.Errorf("%w: %d bytes, 1 to %d are allowed", ErrDatabase, len(database), maxDatabaseBytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.counters.Load()
	if ctr, ok := old[database]; ok {
		return ctr, nil
	}
	if c.err != nil {
		return nil, c.err
	}
	if len(old) >= limit {
		return nil, fmt.Errorf("%w: %d is the most", ErrTooManyDatabases, limit)
	}
	// A copy: the name may be part of a large message.
	ctr := newCounter(strings.Clone(database), 0)
	ctr.raise(c.floor)
	byName := maps.Clone(old)
	byName[ctr.name] = ctr
	c.counters.Store(&byName)
	return ctr, nil
}

// takeSlowly waits for the disk until n etags can be taken, or MaxWait is over.
func (c *Counters) takeSlowly(ctr *counter, n uint64) (first uint64, err error) {
	first, w, err := c.takeOrWait(ctr, n)
	if w == nil {
		return first, err
	}
	timer := time.NewTimer(c.cfg.MaxWait)
	defer timer.Stop()
	select {
	case <-w.served:
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		if ctr.leave(w) {
			return 0, ErrStalled
		}
	}
	return w.first, w.err
}

// takeOrWait takes n etags, or requests more, and returns the caller's place among those
// that wait for them.
func (c *Counters) takeOrWait(ctr *counter, n uint64) (first uint64, w *waiter, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	if first, _, ok := ctr.take(n); ok {
		return first, nil, nil
	}
	if err := ctr.exhausted(n); err != nil {
		return 0, nil, err
	}
	w = &waiter{n: n, served: make(chan struct{})}
	ctr.waiters = append(ctr.waiters, w)
	c.enqueueLocked(ctr)
	return 0, w, nil
}

// Raise moves a counter up, so that its next etag is above floor, and reports whether that
// changed it. A floor above MaxEtag counts as MaxEtag. The floor is durable before the next
// etag is handed out; Raise itself does not wait for the disk. MaxDatabases does not apply:
// floors come from the cluster, which has bounds of its own.
func (c *Counters) Raise(database string, floor uint64) (raised bool) {
	floor = min(floor, MaxEtag)
	ctr, ok := (*c.counters.Load())[database]
	if !ok {
		if floor == 0 {
			return false
		}
		var err error
		if ctr, err = c.add(database, int(^uint(0)>>1)); err != nil {
			return false
		}
	}
	if !ctr.raise(floor) {
		return false
	}
	// Reserving at once saves the first caller the wait, and keeps the disk from lagging
	// behind the ceiling that the cluster raises next.
	if ctr.limit.Load() < floor+c.lowWater {
		c.enqueue(ctr)
	}
	return true
}

// RaiseAll moves all counters up, and those of databases that are not used yet, as Raise
// does for one database.
func (c *Counters) RaiseAll(floor uint64) {
	floor = min(floor, MaxEtag)
	c.mu.Lock()
	c.floor = max(c.floor, floor)
	c.mu.Unlock()
	for database := range *c.counters.Load() {
		c.Raise(database, floor)
	}
}

// Last returns the last etag used, by database: the disk's value before the first use, the
// exact value after it, the floor after Raise. Databases that never had an etag are left
// out. It works after Close too.
func (c *Counters) Last() map[string]uint64 { return c.values((*counter).used) }

// Reserved returns, by database, the end of the reserved block, or the floor of a Raise
// that is not reserved yet: no etag above it is handed out before a later call would show
// more. The cluster's ceiling must stay ahead of it.
func (c *Counters) Reserved() map[string]uint64 { return c.values((*counter).end) }

// values returns the values of all databases but those that are 0.
func (c *Counters) values(of func(*counter) uint64) map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	counters := *c.counters.Load()
	values := make(map[string]uint64, len(counters))
	for name, ctr := range counters {
		if value := of(ctr); value > 0 {
			values[name] = value
		}
	}
	return values
}

// Reservations returns a channel that gets a value whenever Reserved may have changed. It
// is meant for one reader, holds one value and is never closed.
func (c *Counters) Reservations() <-chan struct{} { return c.reserved }

// Broken returns a channel that is closed once a durable write has failed: the node must
// then stop.
func (c *Counters) Broken() <-chan struct{} { return c.broken }

// Opened returns the disk's state at Open, for Reconcile.
func (c *Counters) Opened() Stored { return c.opened.clone() }
