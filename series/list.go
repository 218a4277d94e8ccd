package series

import "slices"

// pageSize is how many scopes a page has.
const pageSize = 256

// list has the scopes in the order in which they began. A frozen copy shares the pages, the
// scopes and the slabs: freezing counts the epoch up, and who changes one of an older epoch
// copies it first.
//
// Invariant: what is of an older epoch does not change.
type list struct {
	pages []page
	len   int
	epoch uint64
}

// page is some consecutive scopes.
type page struct {
	epoch  uint64
	scopes []*scope
}

// at returns a scope, to read it.
func (l *list) at(i int) *scope { return l.pages[i/pageSize].scopes[i%pageSize] }

// own returns a scope, to change it. What at returned before may be another one's since.
func (l *list) own(i int) *scope {
	p := l.ownPage(i / pageSize)
	c := p.scopes[i%pageSize]
	if c.epoch != l.epoch {
		own := *c
		own.epoch, own.slabs = l.epoch, slices.Clone(c.slabs)
		c = &own
		p.scopes[i%pageSize] = c
	}
	return c
}

func (l *list) ownPage(i int) *page {
	p := &l.pages[i]
	if p.epoch != l.epoch {
		*p = page{epoch: l.epoch, scopes: slices.Clone(p.scopes)}
	}
	return p
}

func (l *list) add(c *scope) {
	if l.len%pageSize == 0 {
		l.pages = append(l.pages, page{epoch: l.epoch})
	}
	p := l.ownPage(len(l.pages) - 1)
	p.scopes = append(p.scopes, c)
	l.len++
}

func (l *list) freeze() []page {
	l.epoch++
	return slices.Clone(l.pages)
}

// from yields the scopes from one on.
func (l *list) from(i int) func(yield func(*scope) bool) {
	return func(yield func(*scope) bool) {
		for ; i < l.len; i++ {
			if !yield(l.at(i)) {
				return
			}
		}
	}
}
