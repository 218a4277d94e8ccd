package fsm

import (
	"errors"
	"unicode/utf8"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/identity"
)

// maxFull bounds the identities remembered as full. The claims of all identities are limited, so if
// there are many full identities, each has few claims.
const maxFull = 1024

// fullIdentities caches identities without room above their last value for a requested
// count. Finding that out visits all claims in the way, perhaps millions, at each
// request; a walk that finds room moves the counter past the visited claims.
//
// The key is an identity and a separator, with a value of 0.
type fullIdentities map[numberedItem]fullIdentity

// fullIdentity is such a finding. It is valid while the identity's value is last and none
// of the claims in its way is released; new claims only reduce the room.
type fullIdentity struct {
	last int64
	// most is the greatest count for which there is room.
	most int64
}

func fullKey(f foundIdentity, separator []byte) numberedItem {
	r, _ := utf8.DecodeRune(separator)
	return numberedItem{db: f.db, name: f.name, separator: r}
}

// has reports whether there is known to be no room for the count.
func (m fullIdentities) has(f foundIdentity, next op.IdentityNext) bool {
	if len(m) == 0 {
		return false
	}
	full, ok := m[fullKey(f, next.Separator)]
	return ok && full.last == f.last && next.Count > full.most
}

// remember records that a Next failed for lack of room.
func (m fullIdentities) remember(f foundIdentity, next op.IdentityNext, err error) {
	var exhausted *identity.ExhaustedError
	if !errors.As(err, &exhausted) {
		return
	}
	if len(m) >= maxFull {
		clear(m)
	}
	m[fullKey(f, next.Separator)] = fullIdentity{last: f.last, most: exhausted.Most}
}

// forget is called when a claim is released.
func (m fullIdentities) forget(released numberedItem) {
	released.value = 0
	delete(m, released)
}
