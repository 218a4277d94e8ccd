package worker

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/internal/statehash"
	"github.com/idnode/idnode/worker/snowflake"
)

const (
	// DefaultWindow is how long a window is that nobody gave a length.
	DefaultWindow = 10 * time.Minute
	// MinWindow and MaxWindow bound a pool's longest window. Holders renew theirs, so a long one
	// only helps those that are cut off, and keeps the worker of one that crashed for as long.
	MinWindow = 10 * time.Second
	MaxWindow = 24 * time.Hour
	// Tolerance is how far before the leader's time a window may begin: a holder whose clock is
	// late by less need not wait.
	Tolerance = time.Second
	// MaxSkew is how far the clocks of holder and leader may be apart. A leader whose clock is
	// ahead cannot give away times of the far future.
	MaxSkew = 10 * time.Second
	// MaxHolderBytes bounds the name of a holder.
	MaxHolderBytes = 128
)

// Lease is a worker with its newest window.
type Lease struct {
	// Worker is its number, from 0.
	Worker int
	// Holder is what the holder calls itself.
	Holder string
	// Token is random: only the lease's holder knows it.
	Token uint64
	// From is the first time of the window, and Until the first after it, in units since the
	// epoch. From equals Until where no time is left.
	From, Until int64
	// Free says that another may have the worker: it was released, or its window has passed.
	Free bool
}

// Pool is a set of workers whose ids have one layout.
//
// Invariants: the windows that were ever leased of one worker do not overlap; a later one begins
// at or after the end of the one before; each begins at or after floor.
type Pool struct {
	layout snowflake.Layout
	// window is the longest window, in units.
	window int64
	// floor is the first time that a window may have.
	floor int64
	// unknown says that there may have been leases that the pool does not know. The next
	// acquisition sets the floor behind all of them.
	unknown bool
	// leases are those of workers that ever had one, by number. What follows is derived: those
	// in use by the end of their windows, and free workers by number and by last holder.
	leases          btree.Map[int, Lease]
	inUse           *btree.BTreeG[Lease]
	free, freeByWho *btree.BTreeG[Lease]
	// hash is the sum over the leases.
	hash statehash.Sum
}

// NewPool returns a pool without leases. The window is the longest one that a holder may have; 0
// means DefaultWindow. unknown says that there may have been leases of the same layout. The error is an
// *snowflake.InvalidError.
func NewPool(layout snowflake.Layout, window time.Duration, unknown bool) (*Pool, error) {
	if err := layout.CheckForm(); err != nil {
		return nil, err
	}
	window = cmp.Or(window, DefaultWindow)
	if window < MinWindow || window > MaxWindow {
		return nil, snowflake.Invalid("window", "is %s, must be from %s to %s", window, MinWindow, MaxWindow)
	}
	p := &Pool{layout: layout, window: layout.Units(window), unknown: unknown}
	p.index()
	return p, nil
}

// index makes the empty indexes.
func (p *Pool) index() {
	tree := func(less func(a, b Lease) bool) *btree.BTreeG[Lease] {
		return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	p.inUse = tree(func(a, b Lease) bool {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Worker, b.Worker)) < 0
	})
	p.free = tree(func(a, b Lease) bool { return a.Worker < b.Worker })
	p.freeByWho = tree(func(a, b Lease) bool {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Worker, b.Worker)) < 0
	})
}

// Layout returns the pool's layout.
func (p *Pool) Layout() snowflake.Layout { return p.layout }

// Window returns the longest window.
func (p *Pool) Window() time.Duration {
	return time.Duration(p.window*p.layout.Unit) * time.Millisecond
}

// Same reports whether a pool would have the same definition.
func (p *Pool) Same(other *Pool) bool { return p.layout == other.layout && p.window == other.window }

// SkewError says that the clocks of holder and leader are too far apart.
type SkewError struct {
	// Ahead is by how much the holder's clock is ahead of the leader's; below 0 it is behind.
	Ahead time.Duration
}

func (e *SkewError) Error() string {
	how := "ahead of"
	if e.Ahead < 0 {
		how = "behind"
	}
	return fmt.Sprintf("the holder's clock is %s %s the leader's, more than %s", e.Ahead.Abs(), how, MaxSkew)
}

// FullError says that all workers are in use.
type FullError struct {
	// Ends is when the first window ends.
	Ends time.Time
}

func (e *FullError) Error() string {
	return "all workers are in use; the first window ends at " + e.Ends.UTC().Format(time.RFC3339)
}

// PassedError says that a lease is not the worker's any more.
type PassedError struct{ Worker int }

func (e *PassedError) Error() string {
	return fmt.Sprintf("the lease of worker %d has passed: acquire one anew", e.Worker)
}

// EndError says that the layout has no time left.
type EndError struct{}

func (EndError) Error() string { return "the layout has no time left" }

// Request is what a holder says at each call.
type Request struct {
	// Want is the length of the window; 0 means the longest of the pool.
	Want time.Duration
	// Holder is the clock of the holder, Leader that of the leader.
	Holder, Leader time.Time
}

// check returns the window's length in units.
func (p *Pool) check(r Request) (want int64, err error) {
	if ahead := r.Holder.Sub(r.Leader); ahead.Abs() > MaxSkew {
		return 0, &SkewError{ahead}
	}
	if r.Want < 0 || p.layout.Units(r.Want) > p.window {
		return 0, snowflake.Invalid("window", "is %s, must be from 0 to the pool's %s", r.Want, p.Window())
	}
	return cmp.Or(p.layout.Units(r.Want), p.window), nil
}

// CheckHolder refuses an invalid name of a holder. Whether it is text is for the caller to say.
func CheckHolder(holder string) error {
	if holder == "" || len(holder) > MaxHolderBytes {
		return snowflake.Invalid("holder", "has %d bytes, must have from 1 to %d", len(holder), MaxHolderBytes)
	}
	return nil
}

// Acquire leases a worker: a free one that the holder had last, or the lowest one that is free.
// Its window may begin after the leader's time: where the worker's window before ends later, or
// where the pool does not know all leases. The error is an *snowflake.InvalidError, a *SkewError, a *FullError
// or an EndError. An error changes nothing but what has passed.
func (p *Pool) Acquire(holder string, token uint64, r Request) (Lease, error) {
	want, err := p.check(r)
	if err != nil {
		return Lease{}, err
	}
	if err := CheckHolder(holder); err != nil {
		return Lease{}, err
	}
	now := p.layout.At(r.Leader.UnixMilli())
	p.lapse(now)
	p.settle(now)
	l, ok := p.pick(holder)
	if !ok {
		first, _ := p.inUse.Min()
		return Lease{}, &FullError{time.UnixMilli(p.layout.UnixMilli(first.Until))}
	}
	from := max(l.Until, p.floor, now-p.layout.Units(Tolerance), 0)
	// A window that begins late has its whole length all the same.
	until := min(max(from, now)+want, p.layout.End())
	if from >= until {
		return Lease{}, EndError{}
	}
	l = Lease{Worker: l.Worker, Holder: holder, Token: token, From: from, Until: until}
	p.put(l)
	return l, nil
}

// pick returns the last lease of the worker that the holder shall have; one without a window of a
// worker that never had any.
func (p *Pool) pick(holder string) (picked Lease, ok bool) {
	p.freeByWho.Ascend(Lease{Holder: holder}, func(l Lease) bool {
		if ok = l.Holder == holder; ok {
			picked = l
		}
		return false
	})
	if ok {
		return picked, true
	}
	// Workers get their first lease in the order of their numbers.
	if picked, ok = p.free.Min(); !ok && p.leases.Len() < p.layout.Workers() {
		picked, ok = Lease{Worker: p.leases.Len()}, true
	}
	return picked, ok
}

// settle sets the floor behind all leases that the pool may not know: they were given before, with
// a window of at most the pool's, by clocks that differ by at most MaxSkew from their holders'.
func (p *Pool) settle(now int64) {
	if !p.unknown {
		return
	}
	p.floor, p.unknown = max(p.floor, now+p.window+p.layout.Units(2*MaxSkew)), false
}

// lapse marks workers as free whose windows have passed.
func (p *Pool) lapse(now int64) {
	for {
		first, ok := p.inUse.Min()
		if !ok || first.Until > now {
			return
		}
		first.Free = true
		p.put(first)
	}
}

// Renew moves the end of a lease's window, never back. The error is an *snowflake.InvalidError, a *SkewError
// or a *PassedError.
func (p *Pool) Renew(worker int, token uint64, r Request) (Lease, error) {
	want, err := p.check(r)
	if err != nil {
		return Lease{}, err
	}
	now := p.layout.At(r.Leader.UnixMilli())
	p.lapse(now)
	l, ok := p.leases.Get(worker)
	if !ok || l.Free || l.Token != token {
		return Lease{}, &PassedError{worker}
	}
	l.Until = max(l.Until, min(max(l.From, now)+want, p.layout.End()))
	p.put(l)
	return l, nil
}

// Release frees a worker, and the rest of its window from next on: the first time that no id of
// the holder has. A next outside of the window counts as its nearest end. Of a lease that is free
// already it changes nothing. The error is a *PassedError.
func (p *Pool) Release(worker int, token uint64, next int64) error {
	l, ok := p.leases.Get(worker)
	if !ok || l.Token != token {
		return &PassedError{worker}
	}
	if l.Free {
		return nil
	}
	l.Until, l.Free = min(max(next, l.From), l.Until), true
	p.put(l)
	return nil
}

// Forget ends all leases, because there may have been others that the pool does not know: after a
// restore, or a recovery. New windows begin behind all that could have been given.
func (p *Pool) Forget() {
	p.leases.Scan(func(_ int, l Lease) bool {
		p.floor = max(p.floor, l.Until)
		return true
	})
	p.leases, p.unknown, p.hash = btree.Map[int, Lease]{}, true, 0
	p.index()
}

// put replaces the lease of a worker.
func (p *Pool) put(l Lease) {
	if before, ok := p.leases.Set(l.Worker, l); ok {
		p.hash.Remove(before.hash())
		p.inUse.Delete(before)
		p.free.Delete(before)
		p.freeByWho.Delete(before)
	}
	p.hash.Add(l.hash())
	if l.Free {
		p.free.Set(l)
		p.freeByWho.Set(l)
	} else {
		p.inUse.Set(l)
	}
}

const (
	recordPool statehash.Kind = iota + 1
	recordLease
)

func (l Lease) hash() uint64 {
	var s statehash.Space
	return s.Begin(recordLease).Number(uint64(l.Worker)).Number(l.Token).Number(uint64(l.From)).Number(uint64(l.Until)).
		Flag(l.Free).Text(l.Holder).Hash()
}

// Hash is the hash of all that the pool stores.
func (p *Pool) Hash() uint64 {
	var s statehash.Space
	own := s.Begin(recordPool).Number(uint64(p.layout.Epoch)).Number(uint64(p.layout.Unit)).
		Number(uint64(p.layout.TimeBits<<16 | p.layout.WorkerBits<<8 | p.layout.SequenceBits)).
		Number(uint64(p.window)).Number(uint64(p.floor)).Flag(p.unknown).Hash()
	return own + uint64(p.hash)
}

// InUse returns how many workers are in use at a time, and when the first of their windows ends;
// zero if none is. It takes a step for each window that has passed since the last call of a holder.
func (p *Pool) InUse(now time.Time) (workers int, ends time.Time) {
	at, passed := p.layout.At(now.UnixMilli()), 0
	p.inUse.Scan(func(l Lease) bool {
		if l.Until <= at {
			passed++
			return true
		}
		ends = time.UnixMilli(p.layout.UnixMilli(l.Until))
		return false
	})
	return p.inUse.Len() - passed, ends
}

// Leases calls f with the lease of each worker from a number on, in order, until f returns false.
func (p *Pool) Leases(from int, f func(Lease) bool) {
	p.leases.Ascend(from, func(_ int, l Lease) bool { return f(l) })
}
