package check

import (
	"cmp"
	"iter"
	"slices"
)

// counterKey names a counter. It is a pair, not a joined text.
type counterKey struct {
	database, name string
}

func (k counterKey) String() string { return cmp.Or(k.database, "default") + "/" + k.name }

// counters holds one checker of type C per counter.
type counters[C any] struct {
	byKey map[counterKey]*C
	// key and last are the counter asked for last: histories come in runs.
	key  counterKey
	last *C
}

// of returns the checker of a counter.
func (c *counters[C]) of(key counterKey) *C {
	if c.last != nil && c.key == key {
		return c.last
	}
	if c.byKey == nil {
		c.byKey = make(map[counterKey]*C)
	}
	one := c.byKey[key]
	if one == nil {
		one = new(C)
		c.byKey[key] = one
	}
	c.key, c.last = key, one
	return one
}

// all yields the checkers in a fixed order, so that a report is always the same.
func (c *counters[C]) all() iter.Seq2[counterKey, *C] {
	return func(yield func(counterKey, *C) bool) {
		keys := make([]counterKey, 0, len(c.byKey))
		for key := range c.byKey {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, func(a, b counterKey) int {
			return cmp.Or(cmp.Compare(a.database, b.database), cmp.Compare(a.name, b.name))
		})
		for _, key := range keys {
			if !yield(key, c.byKey[key]) {
				return
			}
		}
	}
}
