package check

import (
	"cmp"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// workerPool judges the windows of one pool of workers, and the Snowflake ids made in them.
//
// A lease's window is what its holder was told: the end is that of the latest renewal that was
// answered. A release that was not refused ends it behind the last id. A violation is
//
//   - two windows of one worker that share a time, whenever they were answered;
//   - an id that was made twice;
//   - an id outside of the window that its holder knew of, of another worker, or of nobody's lease;
//   - a renewal or a release of a lease that was evicted before: its window ends by itself.
//
// Of ids that have no token, those of a node's own worker, no window is known.
// A lease whose answer was lost leaves a hole, and so does all that a holder did not use.
type workerPool struct {
	leases   []*workerLease
	renewals []renewal
	// releases are those that were not refused.
	releases  []release
	evictions []eviction
	ids       []madeIDs
}

// workerLease is a lease that was answered. Times are both included.
type workerLease struct {
	token     string
	worker    int64
	low, high int64
	ret       int64
	pos       int
}

// renewal is a renewal that was answered.
type renewal struct {
	token string
	call  int64
	high  int64
	pos   int
}

// release is a release that was not refused; answered says that it took effect.
type release struct {
	token    string
	call     int64
	last     int64
	answered bool
	pos      int
}

// eviction is one that was answered.
type eviction struct {
	worker    int64
	call, ret int64
	pos       int
}

// madeIDs are ids that one call made.
type madeIDs struct {
	token     string
	worker    int64
	low, high int64
	ret       int64
	blocks    []history.Block
	pos       int
}

// add takes a call or the making of ids in that did not fail.
func (p *workerPool) add(op *history.Op, pos int) {
	switch {
	case op.Kind == history.Free:
		p.releases = append(p.releases, release{op.Tag, op.Call, op.Last, op.Outcome == history.OK, pos})
	case op.Outcome != history.OK:
	case op.Kind == history.Lease:
		p.leases = append(p.leases, &workerLease{op.Tag, op.Result, op.Low, op.High, op.Return, pos})
	case op.Kind == history.Renew:
		p.renewals = append(p.renewals, renewal{op.Tag, op.Call, op.High, pos})
	case op.Kind == history.Evict:
		p.evictions = append(p.evictions, eviction{op.Result, op.Call, op.Return, pos})
	case op.Kind == history.Make:
		p.ids = append(p.ids, madeIDs{op.Tag, op.Result, op.Low, op.High, op.Return, op.Blocks, pos})
	}
}

// check judges the pool, and returns how many ids were made.
func (p *workerPool) check(where string, f *findings) (ids int64) {
	leases, renewals := map[string]*workerLease{}, map[string][]renewal{}
	for _, r := range p.renewals {
		renewals[r.token] = append(renewals[r.token], r)
	}
	for _, l := range p.leases {
		leases[l.token] = l
	}
	released := p.released(where, leases, f)
	for _, r := range p.renewals {
		if e := p.evicted(leases[r.token], r.call); e != nil {
			f.violation("workers/evicted", where, []int{leases[r.token].pos, e.pos, r.pos},
				"a lease of worker %d was evicted, and renewed after that", e.worker)
		}
	}
	var made []idRange
	for _, m := range p.ids {
		for _, b := range m.blocks {
			made = append(made, idRange{first: b.First, last: b.Last, pos: int32(m.pos)})
		}
		ids += history.Size(m.blocks)
		if m.token == "" {
			continue
		}
		p.inside(where, m, leases[m.token], renewals[m.token], released, f)
	}
	rising(made, func(a, b idRange) {
		f.violation("workers/twice", where, []int{int(a.pos), int(b.pos)}, "the ids %d to %d and %d to %d were made", a.first, a.last,
			b.first, b.last)
	}, nil)
	for _, l := range p.leases {
		for _, r := range renewals[l.token] {
			l.high = max(l.high, r.high)
		}
		if last, ok := released[l.token]; ok {
			l.high = min(l.high, last)
		}
	}
	p.overlap(where, f)
	return ids
}

// released is the last time with an id, by the lease's token. A release after an eviction ends nothing.
func (p *workerPool) released(where string, leases map[string]*workerLease, f *findings) map[string]int64 {
	last := map[string]int64{}
	for _, r := range p.releases {
		e := p.evicted(leases[r.token], r.call)
		switch {
		case e == nil:
			last[r.token] = r.last
		case r.answered:
			f.violation("workers/evicted", where, []int{leases[r.token].pos, e.pos, r.pos},
				"a lease of worker %d was evicted, and released after that", e.worker)
		}
	}
	return last
}

// evicted is an eviction that surely ended a lease before a time; nil if there is none.
func (p *workerPool) evicted(l *workerLease, before int64) *eviction {
	for i := range p.evictions {
		if e := &p.evictions[i]; l != nil && e.worker == l.worker && l.ret < e.call && e.ret < before {
			return e
		}
	}
	return nil
}

// inside finds ids that are not of their lease's window.
func (p *workerPool) inside(where string, m madeIDs, l *workerLease, renewals []renewal, released map[string]int64, f *findings) {
	if l == nil {
		f.violation("workers/outside", where, []int{m.pos}, "ids were made of a lease that nobody was given")
		return
	}
	high := l.high
	for _, r := range renewals {
		if r.call <= m.ret {
			high = max(high, r.high)
		}
	}
	if last, ok := released[m.token]; ok {
		high = min(high, last)
	}
	if m.worker != l.worker || m.low < l.low || m.high > high {
		f.violation("workers/outside", where, []int{l.pos, m.pos}, "worker %d made ids with times %d to %d of a lease of %d from %d to %d",
			m.worker, m.low, m.high, l.worker, l.low, high)
	}
}

// overlap finds two windows of one worker that share a time.
func (p *workerPool) overlap(where string, f *findings) {
	all := slices.DeleteFunc(p.leases, func(l *workerLease) bool { return l.high < l.low })
	slices.SortStableFunc(all, func(a, b *workerLease) int { return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.low, b.low)) })
	for i, l := range all[min(1, len(all)):] {
		if before := all[i]; before.worker == l.worker && before.high >= l.low {
			f.violation("workers/overlap", where, []int{before.pos, l.pos}, "worker %d was leased from %d to %d, and from %d to %d", l.worker,
				before.low, before.high, l.low, l.high)
		}
	}
}
