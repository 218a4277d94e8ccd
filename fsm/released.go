package fsm

import (
	"github.com/idnode/idnode/fsm/table"
)

// maxReleased is how many ids are remembered that were claimed, that an identity stepped
// over, and that were released. Further ones count as issued: they can no longer be
// claimed.
const maxReleased = 1 << 16

// addReleased records an id that was released after an identity had stepped over it: it
// is unused, so it can be claimed again. Identities keep stepping over it, even when they
// are set back, until it is claimed.
//
// Invariant: an id is claimed or released, or neither; each released one has a
// number.
func (c *contents) addReleased(item claimItem) {
	n, ok := item.numbered()
	if !ok || c.released.Len() >= maxReleased {
		return
	}
	c.released.Insert(table.Entry[struct{}]{Database: item.db, Name: item.id})
	c.numbered.Set(n)
	c.stored.add(hashReleased(item))
}

// dropReleased forgets an id that is claimed again, and reports whether it was released:
// the identity has stepped over the new claim, too.
func (c *contents) dropReleased(item claimItem) claimValue {
	ref, ok := c.released.Find(item.db, item.id)
	if !ok {
		return false
	}
	c.released.Delete(ref)
	c.stored.remove(hashReleased(item))
	return true
}
