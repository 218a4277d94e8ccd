package snowflake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/internal/statehash"
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
	// MaxSkew is how far the clocks of holder and leader may be apart, and how far after the
	// leader's time a window may begin. So no window ends later than MaxSkew and its length after
	// that time, and a clock that was wrong for a while makes few workers wait.
	MaxSkew = 10 * time.Second
	// Apart is how far behind windows that a pool does not know its own begin: what clocks are apart.
	Apart = 3 * MaxSkew
	// MaxHolderBytes bounds the name of a holder, and MaxPrincipalBytes what is kept of its principal's.
	MaxHolderBytes    = 128
	MaxPrincipalBytes = 256
)

// Lease is a worker with its newest window.
type Lease struct {
	// Worker is its number, from 0.
	Worker int
	// Holder is what the holder calls itself, and Principal whose it is: "" without TLS.
	Holder, Principal string
	// Token is random, and not 0: only the lease's holder knows it. It is 0 once the lease is evicted.
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
// at or after the end of the one before; each begins at or after the floor.
type Pool struct {
	stored Stored
	// leases are those of workers that ever had one, by number. What follows is derived: those
	// in use by the end of their windows, and free workers by that, and by last holder.
	leases          btree.Map[int, Lease]
	inUse           *btree.BTreeG[Lease]
	free, freeByWho *btree.BTreeG[Lease]
	// has is how many workers in use each holder, and each principal, has; byHolder and byPrincipal have them by the
	// ends of their windows.
	has                   map[who]int
	byHolder, byPrincipal *btree.BTreeG[Lease]
	// hash is the sum over the leases.
	hash statehash.Sum
}

// NewPool returns a pool without leases. The window is the longest one that a holder may have; 0
// means DefaultWindow. unknown says that there may have been leases of the same definition. The error is an
// *snowflake.InvalidError.
func NewPool(layout Layout, window time.Duration, unknown bool) (*Pool, error) {
	if err := layout.CheckForm(); err != nil {
		return nil, err
	}
	window = cmp.Or(window, DefaultWindow)
	if window < MinWindow || window > MaxWindow {
		return nil, snowflake.Invalid("window", "is %s, must be from %s to %s", window, MinWindow, MaxWindow)
	}
	// Whole units, of which MaxWindow may have part of one: what Window returns is accepted again.
	s := Stored{Layout: layout, Window: min(layout.Units(window), MaxWindow.Milliseconds()/layout.Unit)}
	if unknown {
		s.Unknown = s.Window
	}
	return newPool(s), nil
}

func newPool(s Stored) *Pool {
	tree := func(less func(a, b Lease) bool) *btree.BTreeG[Lease] {
		return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	byEnd := func(a, b Lease) bool {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Worker, b.Worker)) < 0
	}
	byWho := func(a, b Lease) bool {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Until, b.Until), cmp.Compare(a.Worker, b.Worker)) < 0
	}
	byPrincipal := func(a, b Lease) bool {
		return cmp.Or(cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Until, b.Until), cmp.Compare(a.Worker, b.Worker)) < 0
	}
	byHolder := func(a, b Lease) bool {
		return a.Principal < b.Principal || a.Principal == b.Principal && byWho(a, b)
	}
	return &Pool{
		stored: s, inUse: tree(byEnd), free: tree(byEnd), freeByWho: tree(byWho), has: make(map[who]int),
		byHolder: tree(byHolder), byPrincipal: tree(byPrincipal),
	}
}

// Evicted says that the lease is not renewed any more, nor released: the worker is free when its window has passed.
func (l Lease) Evicted() bool { return l.Token == 0 }

// is reports whether a token is that of the lease.
func (l Lease) is(token uint64) bool { return l.Token == token && !l.Evicted() }

// Layout returns the pool's layout.
func (p *Pool) Layout() Layout { return p.stored.Layout }

// Window returns the longest window.
func (p *Pool) Window() time.Duration {
	return time.Duration(p.stored.Window*p.Layout().Unit) * time.Millisecond
}

// Same reports whether a pool would have the same definition.
func (p *Pool) Same(other *Pool) bool {
	return p.Layout() == other.Layout() && p.stored.Window == other.stored.Window
}

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

// FullError says that all workers are in use, or may be: by leases that the pool does not know.
type FullError struct {
	// Begins is when the next window can begin.
	Begins time.Time
}

func (e *FullError) Error() string {
	return "all workers are in use, or may be, until " + e.Begins.UTC().Format(time.RFC3339)
}

// PassedError says that a lease is not the worker's any more.
type PassedError struct{ Worker int }

func (e *PassedError) Error() string {
	return fmt.Sprintf("the lease of worker %d has passed: acquire one anew", e.Worker)
}

// HeldError says that no lease of a worker can be evicted: nobody has it, or another holder.
type HeldError struct{ Worker int }

func (e *HeldError) Error() string {
	return fmt.Sprintf("worker %d is not in use, or by another holder: the list of workers shows whose each is", e.Worker)
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
	// Principal is whose the holder is.
	Principal string
	// NoneNew says that there is no room for a worker that was never leased.
	NoneNew bool
}

// check returns the window's length in units.
func (p *Pool) check(r Request) (want int64, err error) {
	if ahead := r.Holder.Sub(r.Leader); ahead.Abs() > MaxSkew {
		return 0, &SkewError{ahead}
	}
	if r.Want < 0 || p.Layout().Units(r.Want) > p.stored.Window {
		return 0, snowflake.Invalid("window", "is %s, must be from 0 to the pool's %s", r.Want, p.Window())
	}
	return cmp.Or(p.Layout().Units(r.Want), p.stored.Window), nil
}

// CheckHolder refuses an invalid name of a holder. Whether it is text is for the caller to say.
func CheckHolder(holder string) error {
	if holder == "" || len(holder) > MaxHolderBytes {
		return snowflake.Invalid("holder", "has %d bytes, must have from 1 to %d", len(holder), MaxHolderBytes)
	}
	return nil
}

// Acquire leases a worker: a free one that the holder had last, else the one that is free for the
// longest, or was never leased. Its window may begin up to MaxSkew after the leader's time, where the
// worker's window before ends then. The error is an *InvalidError, a *SkewError, a
// *ShareError, a *FullError or an EndError. An error changes no lease but those that have passed.
func (p *Pool) Acquire(holder string, token uint64, r Request) (Lease, error) {
	want, err := p.check(r)
	if err != nil {
		return Lease{}, err
	}
	if err := CheckHolder(holder); err != nil {
		return Lease{}, err
	}
	now := p.Layout().At(r.Leader.UnixMilli())
	p.lapse(now)
	p.settle(now)
	if err := p.checkShare(who{r.Principal, holder}); err != nil {
		return Lease{}, err
	}
	latest := now + p.Layout().Units(MaxSkew)
	most := p.Layout().Workers()
	if r.NoneNew {
		most = 0
	}
	l, ok := p.pick(holder, now, latest, most)
	if !ok {
		return Lease{}, p.full(p.Layout().End())
	}
	from := max(l.Until, p.stored.Floor, now-p.Layout().Units(Tolerance), 0)
	if from >= p.Layout().End() {
		return Lease{}, EndError{}
	}
	if from > latest {
		return Lease{}, p.full(from)
	}
	l = Lease{Worker: l.Worker, Holder: holder, Principal: r.Principal, Token: token, From: from, Until: p.end(from, want, r)}
	p.put(l)
	return l, nil
}

// end is the end of a window. One that begins late has its whole length all the same, and so has that
// of a holder whose clock is ahead.
func (p *Pool) end(from, want int64, r Request) int64 {
	now := max(p.Layout().At(r.Leader.UnixMilli()), p.Layout().At(r.Holder.UnixMilli()))
	return min(max(from, now)+want, p.Layout().End())
}

// pick returns the last lease of the worker that the holder shall have; one without a window of a
// worker that never had any, if fewer than most were leased.
func (p *Pool) pick(holder string, now, latest int64, most int) (picked Lease, ok bool) {
	p.freeByWho.Ascend(Lease{Holder: holder}, func(l Lease) bool {
		picked, ok = l, l.Holder == holder && l.Until <= latest
		return false
	})
	if ok {
		return picked, true
	}
	picked, ok = p.free.Min()
	// Workers get their first lease in the order of their numbers.
	if fresh := p.leases.Len(); (!ok || picked.Until > now) && fresh < most {
		return Lease{Worker: fresh}, true
	}
	return picked, ok
}

// full says when a window can begin: where one in use ends, if that is before from.
func (p *Pool) full(from int64) error {
	if first, ok := p.inUse.Min(); ok {
		from = min(from, max(first.Until, p.stored.Floor))
	}
	return &FullError{time.UnixMilli(p.Layout().UnixMilli(from))}
}

// settle sets the floor behind all leases that the pool may not know. They were given before, and
// end at most MaxSkew and a window after the time of their leaders. The clocks of these leaders and
// this one may be wrong by MaxSkew each.
func (p *Pool) settle(now int64) {
	if p.stored.Unknown == 0 {
		return
	}
	p.stored.Floor, p.stored.Unknown = max(p.stored.Floor, now+p.stored.Unknown+p.Layout().Units(Apart)), 0
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

// Renew moves the end of a lease's window, never back. The error is an *InvalidError, a *SkewError
// or a *PassedError.
func (p *Pool) Renew(worker int, token uint64, r Request) (Lease, error) {
	want, err := p.check(r)
	if err != nil {
		return Lease{}, err
	}
	now := p.Layout().At(r.Leader.UnixMilli())
	p.lapse(now)
	l, ok := p.leases.Get(worker)
	if !ok || l.Free || !l.is(token) {
		return Lease{}, &PassedError{worker}
	}
	l.Until = max(l.Until, p.end(l.From, want, r))
	p.put(l)
	return l, nil
}

// Release frees a worker, and the rest of its window from next on: the first time that no id of
// the holder has. A next outside of the window counts as its nearest end. Of a lease that is free
// already it changes nothing. The error is a *PassedError.
func (p *Pool) Release(worker int, token uint64, next int64) error {
	l, ok := p.leases.Get(worker)
	if !ok || !l.is(token) {
		return &PassedError{worker}
	}
	if l.Free {
		return nil
	}
	l.Until, l.Free = min(max(next, l.From), l.Until), true
	p.put(l)
	return nil
}

// Evict ends the lease of a worker that is in use without its holder, which may make ids until the window ends. With a
// holder's name it must be that one's. The error is a *HeldError.
func (p *Pool) Evict(worker int, holder string, leader time.Time) (Lease, error) {
	p.lapse(p.Layout().At(leader.UnixMilli()))
	l, ok := p.leases.Get(worker)
	if !ok || l.Free || holder != "" && l.Holder != holder {
		return Lease{}, &HeldError{worker}
	}
	l.Token = 0
	p.put(l)
	return l, nil
}

// Forget ends all leases, because there may have been others that the pool does not know: after a
// restore, or a recovery. New windows begin behind all that could have been given, of which the longest
// had the length of window or of the pool's own.
func (p *Pool) Forget(window time.Duration) {
	for p.inUse.Len() > 0 {
		first, _ := p.inUse.Min()
		first.Free = true
		p.put(first)
	}
	p.stored.Unknown = max(p.stored.Unknown, p.stored.Window, p.Layout().Units(window))
}

func (p *Pool) put(l Lease) {
	if before, ok := p.leases.Set(l.Worker, l); ok {
		p.hash.Remove(before.hash())
		if _, used := p.inUse.Delete(before); used {
			p.count(before, -1)
		}
		p.free.Delete(before)
		p.freeByWho.Delete(before)
	}
	p.hash.Add(l.hash())
	if l.Free {
		p.free.Set(l)
		p.freeByWho.Set(l)
	} else {
		p.inUse.Set(l)
		p.count(l, 1)
	}
}

const (
	recordPool statehash.RecordKind = iota + 1
	recordLease
)

func (l Lease) hash() uint64 {
	var s statehash.Space
	return s.Begin(recordLease).Number(uint64(l.Worker)).Number(l.Token).Number(uint64(l.From)).Number(uint64(l.Until)).
		Flag(l.Free).Text(l.Holder).Text(l.Principal).Hash()
}

// Hash is the hash of all that the pool stores.
func (p *Pool) Hash() uint64 {
	var s statehash.Space
	layout := p.Layout()
	own := s.Begin(recordPool).Number(uint64(layout.Epoch)).Number(uint64(layout.Unit)).
		Number(uint64(layout.TimeBits<<16 | layout.WorkerBits<<8 | layout.SequenceBits)).
		Number(uint64(p.stored.Window)).Number(uint64(p.stored.Floor)).Number(uint64(p.stored.Unknown)).Hash()
	return own + uint64(p.hash)
}

// Begin moves the floor of a new pool to a time, in milliseconds since 1970 UTC, or behind it.
func (p *Pool) Begin(unixMilli int64) {
	p.stored.Floor = max(p.stored.Floor, p.Layout().At(unixMilli-1)+1)
}

// End is the end of all windows that were given, in milliseconds since 1970 UTC; false if the pool may not know it.
func (p *Pool) End() (unixMilli int64, known bool) {
	used, _ := p.inUse.Max()
	free, _ := p.free.Max()
	return p.Layout().UnixMilli(max(p.stored.Floor, used.Until, free.Until)), p.stored.Unknown == 0
}

// Settle does what the next acquisition would: from a time on it is known until when windows reach that the pool
// does not know.
func (p *Pool) Settle(now time.Time) { p.settle(p.Layout().At(now.UnixMilli())) }

// Known returns how many workers ever had a holder.
func (p *Pool) Known() int { return p.leases.Len() }

// InUse returns how many workers are in use at a time, and when the first of their windows ends;
// zero if none is. It takes a step for each window that has passed since the last call of a holder.
func (p *Pool) InUse(now time.Time) (workers int, ends time.Time) {
	at, passed := p.Layout().At(now.UnixMilli()), 0
	p.inUse.Scan(func(l Lease) bool {
		if l.Until <= at {
			passed++
			return true
		}
		ends = time.UnixMilli(p.Layout().UnixMilli(l.Until))
		return false
	})
	return p.inUse.Len() - passed, ends
}

// Leased is how many workers were in use when a holder last called.
func (p *Pool) Leased() int { return p.inUse.Len() }

// Leases calls f with the lease of each worker from a number on, in order, until f returns false.
func (p *Pool) Leases(from int, f func(Lease) bool) {
	p.leases.Ascend(from, func(_ int, l Lease) bool { return f(l) })
}
