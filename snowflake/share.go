package snowflake

import (
	"fmt"
	"math"
	"time"

	"github.com/tidwall/btree"
)

// leastShare is how many workers each holder and each principal may have, however small the pool is.
const leastShare = 4

// who names those that have workers. A holder is one of its principal's: another principal's holder of
// the same name is another one. An empty holder stands for all of its principal's.
type who struct{ principal, holder string }

// ShareError says that a holder, or a principal with all its holders, has as many workers as it may.
type ShareError struct {
	// What is "holder" or "principal", Name its name.
	What, Name string
	// Has is how many it has of the pool's Workers.
	Has, Workers int
	// Begins is when the first of its windows ends, unless it is renewed.
	Begins time.Time
}

func (e *ShareError) Error() string {
	return fmt.Sprintf("%s %.200q has %d of the pool's %d workers, as many as one %s may: the next is free when it releases one, or a window "+
		"of its own ends, the first at %s unless it is renewed", e.What, e.Name, e.Has, e.Workers, e.What, e.Begins.UTC().Format(time.RFC3339))
}

// checkShare refuses a worker to who has its share: a holder an eighth of the pool, a principal half
// of what others leave. So a program that fails at each start takes no more than the first, and no
// principal takes all. Callers without TLS are not told apart: together they have no share.
func (p *Pool) checkShare(of who) error {
	workers := p.Layout().Workers()
	if has := p.has[of]; has >= max(leastShare, workers/8) {
		return &ShareError{"holder", of.holder, has, workers, p.firstEnd(of)}
	}
	all := who{principal: of.principal}
	has := p.has[all]
	others := p.inUse.Len() - has
	if of.principal != "" && has >= max(leastShare, (workers-others)/2) {
		return &ShareError{"principal", of.principal, has, workers, p.firstEnd(all)}
	}
	return nil
}

// firstEnd is when the first window of those that a holder or a principal has ends.
func (p *Pool) firstEnd(of who) (ends time.Time) {
	tree := p.byHolder
	if of.holder == "" {
		tree = p.byPrincipal
	}
	tree.Ascend(Lease{Principal: of.principal, Holder: of.holder, Until: math.MinInt64}, func(l Lease) bool {
		ends = time.UnixMilli(p.Layout().UnixMilli(l.Until))
		return false
	})
	return ends
}

// count adds n, 1 or -1, workers in use to those of a lease's holder and principal.
func (p *Pool) count(l Lease, n int) {
	for _, w := range []who{{l.Principal, l.Holder}, {principal: l.Principal}} {
		if p.has[w] += n; p.has[w] == 0 {
			delete(p.has, w)
		}
	}
	for _, tree := range []*btree.BTreeG[Lease]{p.byHolder, p.byPrincipal} {
		if n > 0 {
			tree.Set(l)
		} else {
			tree.Delete(l)
		}
	}
}
