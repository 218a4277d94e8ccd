package fsm

import (
	"errors"
	"unicode/utf8"

	"github.com/idnode/idnode/identity"
)

// maxFull bounds how many identities are remembered as full. The claims in the way
// of all identities are limited, so one of many has few of them.
const maxFull = 1024

// fullIdentities remembers identities that have no room above their last value for
// as many values as somebody wanted. To find that out takes a look at all claims in
// the way, which may be millions, each time somebody asks; a walk that finds room
// moves the counter past the claims that it looked at.
//
// The key is an identity and a separator, with a value of 0.
type fullIdentities map[numberedItem]fullIdentity

// fullIdentity is what was found. It holds as long as the identity stands at last
// and none of the claims in its way is released; new claims leave still less room.
type fullIdentity struct {
	last int64
	// most is the greatest count for which there is room.
	most int64
}

// fullKey is the key of an identity under a separator.
func fullKey(f foundIdentity, separator []byte) numberedItem {
	r, _ := utf8.DecodeRune(separator)
	return numberedItem{db: f.db, name: f.name, separator: r}
}

// has reports whether it is known that there is no room for what is wanted.
func (m fullIdentities) has(f foundIdentity, next identityNextOp) bool {
	if len(m) == 0 {
		return false
	}
	full, ok := m[fullKey(f, next.separator)]
	return ok && full.last == f.last && next.count > full.most
}

// remember takes over why a Next failed.
func (m fullIdentities) remember(f foundIdentity, next identityNextOp, err error) {
	var exhausted *identity.ExhaustedError
	if !errors.As(err, &exhausted) {
		return
	}
	if len(m) >= maxFull {
		clear(m)
	}
	m[fullKey(f, next.separator)] = fullIdentity{last: f.last, most: exhausted.Most}
}

// forget is called when a claim is released.
func (m fullIdentities) forget(released numberedItem) {
	released.value = 0
	delete(m, released)
}
