package fsm

import (
	"errors"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// identityItem is an identity as the tree holds it: 32 bytes and the name.
// Whether it is hidden is told by the tree it is in.
type identityItem struct {
	name string
	last int64
	db   uint32
}

func (a identityItem) less(b identityItem) bool {
	if a.db != b.db {
		return a.db < b.db
	}
	return a.name < b.name
}

// foundIdentity is an identity, or the place where there is none yet.
type foundIdentity struct {
	identityItem
	hidden bool
	exists bool
	// path leads to the item in its tree, so that storing it again need not
	// search for it: the search is what most of an operation's time goes into.
	path btree.PathHint
}

// counter returns what package identity works on.
func (f foundIdentity) counter() identity.Counter {
	return identity.Counter{Last: f.last, Hidden: f.hidden}
}

// findIdentity looks an identity up; a name nobody used has the zero counter.
func (c *contents) findIdentity(db uint32, name string) foundIdentity {
	f := foundIdentity{identityItem: identityItem{db: db, name: name}}
	if item, ok := c.identities.GetHint(f.identityItem, &f.path); ok {
		f.identityItem, f.exists = item, true
	} else if item, ok := c.hidden.Get(f.identityItem); ok {
		f.identityItem, f.exists, f.hidden = item, true, true
	}
	return f
}

// putIdentity stores the new counter of what findIdentity returned.
func (c *contents) putIdentity(f foundIdentity, now identity.Counter) {
	if f.exists {
		c.hash.remove(hashIdentity(f.identityItem, f.hidden))
	} else {
		c.nameBytes += int64(len(f.name))
	}
	if f.exists && f.hidden != now.Hidden {
		c.identityTree(f.hidden).Delete(f.identityItem)
	}
	item := f.identityItem
	item.last = now.Last
	c.identityTree(now.Hidden).SetHint(item, &f.path)
	c.hash.add(hashIdentity(item, now.Hidden))
}

// identityTree returns the tree of hidden or of other identities.
func (c *contents) identityTree(hidden bool) tree[identityItem] {
	if hidden {
		return c.hidden
	}
	return c.identities
}

// identityCount counts identities, hidden ones too: they take as much memory.
func (c *contents) identityCount() int { return c.identities.Len() + c.hidden.Len() }

// identityNext hands out values.
func (c *contents) identityNext(dst []byte, op *operation) ([]byte, *refusal) {
	next, err := decodeIdentityNext(op.payload)
	if err != nil {
		return dst, invalid("", "%v", err)
	}
	if err := checkIdentityNext(op, next); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(op), string(next.name))
	if err := c.roomForIdentity(op, found); err != nil {
		return dst, err
	}
	counter, blocks, failed := found.counter().Next(next.count, c.claimedValues(found, next.separator))
	if failed != nil {
		return dst, refuseIdentity(failed, found)
	}
	c.useDatabase(op)
	c.putIdentity(found, counter)
	return appendBlocks(dst, blocks), nil
}

// checkIdentityNext refuses a malformed request.
func checkIdentityNext(op *operation, next identityNextOp) *refusal {
	if err := checkIdentity(op, next.name); err != nil {
		return err
	}
	if next.count < 1 || next.count > identity.MaxCount {
		return invalid("count", "is %d, must be from 1 to %d", next.count, identity.MaxCount)
	}
	if r, n := utf8.DecodeRune(next.separator); n == 0 || n != len(next.separator) || r == utf8.RuneError {
		return invalid("separator", "must be one character")
	}
	return nil
}

// checkIdentity refuses a request with a bad database or name.
func checkIdentity[T ~string | ~[]byte](op *operation, name T) *refusal {
	if err := checkDatabase(op); err != nil {
		return err
	}
	return checkText("name", name, docid.MaxNameBytes)
}

// roomForIdentity refuses a new name if a limit is reached.
func (c *contents) roomForIdentity(op *operation, f foundIdentity) *refusal {
	if f.exists {
		return nil
	}
	return c.room(op, settingMaxIdentities, c.identityCount(), len(f.name))
}

// claimedValues returns the claimed values of an identity under a separator, as
// identity.Counter.Next wants them; nil if there are no such claims at all.
func (c *contents) claimedValues(f foundIdentity, separator []byte) func(from int64) iter.Seq[int64] {
	if c.numbered.Len() == 0 {
		return nil
	}
	sep, _ := utf8.DecodeRune(separator)
	return func(from int64) iter.Seq[int64] {
		return c.numberedFrom(numberedItem{db: f.db, name: f.name, separator: sep, value: from})
	}
}

// identitySeed moves the last used value. A name nobody used has 0, for expected
// as well. A hidden identity is seeded from the value it kept, which is also
// what expected is compared with, and is shown again: whoever does not know that
// it once existed must not be able to set it back without force.
func (c *contents) identitySeed(dst []byte, op *operation) ([]byte, *refusal) {
	var seed raftlogv1.IdentitySeed
	if err := decodePayload(op, &seed); err != nil {
		return dst, err
	}
	if err := checkIdentity(op, seed.GetName()); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(op), strings.Clone(seed.GetName()))
	if err := c.roomForIdentity(op, found); err != nil {
		return dst, err
	}
	counter, err := found.counter().Seed(seed.GetValue(), seed.GetForce(), seed.Expected)
	if err != nil {
		return dst, refuseIdentity(err, found)
	}
	c.useDatabase(op)
	c.putIdentity(found, counter)
	return appendValue(dst, counter.Last), nil
}

// identityDelete hides an identity, or forgets it. Only forgetting finds one
// that is hidden already.
func (c *contents) identityDelete(dst []byte, op *operation) ([]byte, *refusal) {
	var del raftlogv1.IdentityDelete
	if err := decodePayload(op, &del); err != nil {
		return dst, err
	}
	if err := checkIdentity(op, del.GetName()); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(op), del.GetName())
	if !found.exists || found.hidden && !del.GetForget() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND, "name", "there is no identity %q", del.GetName())
	}
	if del.GetForget() {
		c.forgetIdentity(found)
	} else {
		c.putIdentity(found, identity.Counter{Last: found.last, Hidden: true})
	}
	return appendValue(dst, found.last), nil
}

// forgetIdentity removes an identity that exists.
func (c *contents) forgetIdentity(f foundIdentity) {
	c.identityTree(f.hidden).Delete(f.identityItem)
	c.hash.remove(hashIdentity(f.identityItem, f.hidden))
	c.nameBytes -= int64(len(f.name))
}

// refuseIdentity translates an error of package identity.
func refuseIdentity(err error, f foundIdentity) *refusal {
	switch {
	case errors.Is(err, identity.ErrExhausted):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "count",
			"identity %q stands at %d and has no room for so many values", f.name, f.last)
	case errors.Is(err, identity.ErrConflict):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected",
			"identity %q stands at %d", f.name, f.last)
	default:
		return invalid("", "%v", err)
	}
}
