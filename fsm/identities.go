package fsm

import (
	"errors"
	"iter"
	"unicode/utf8"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// identityValue is the last used value of an identity. Its table decides whether it is
// hidden.
type identityValue int64

// foundIdentity is an identity, or a name that has none yet.
type foundIdentity struct {
	db     uint32
	name   string
	last   int64
	hidden bool
	exists bool
	// ref is where it lies in its table, if it exists.
	ref table.Ref
}

// counter returns what package identity works on.
func (f foundIdentity) counter() identity.Counter {
	return identity.Counter{Last: f.last, Hidden: f.hidden}
}

// findIdentity looks an identity up; the counter of an unknown name is at the floor.
func (c *contents) findIdentity(db uint32, name string) foundIdentity {
	f := foundIdentity{db: db, name: name, last: c.floor.names}
	if f.ref, f.exists = c.identities.Find(db, name); !f.exists {
		f.ref, f.exists = c.hidden.Find(db, name)
		f.hidden = f.exists
	}
	if f.exists {
		f.last = int64(c.identityTable(f.hidden).Value(f.ref))
	}
	return f
}

// putIdentity stores the new counter of what findIdentity returned.
func (c *contents) putIdentity(f foundIdentity, now identity.Counter) {
	if f.exists && f.hidden == now.Hidden {
		c.stored.remove(hashIdentity(f.db, f.name, f.last, f.hidden))
		c.identityTable(f.hidden).Set(f.ref, identityValue(now.Last))
		c.stored.add(hashIdentity(f.db, f.name, now.Last, now.Hidden))
		return
	}
	if f.exists {
		c.forgetIdentity(f)
	}
	c.addIdentity(f.db, f.name, now)
}

// addIdentity stores an identity that does not exist.
func (c *contents) addIdentity(db uint32, name string, now identity.Counter) {
	c.identityTable(now.Hidden).Insert(table.Entry[identityValue]{Database: db, Name: name, Value: identityValue(now.Last)})
	c.countName(db, name, 1)
	c.stored.add(hashIdentity(db, name, now.Last, now.Hidden))
}

// identityTable returns the table of hidden or of other identities.
func (c *contents) identityTable(hidden bool) *table.Table[identityValue] {
	if hidden {
		return c.hidden
	}
	return c.identities
}

// identityCount counts identities, hidden ones too: they take as much memory.
func (c *contents) identityCount() int { return c.identities.Len() + c.hidden.Len() }

// identityNext hands out values.
func (c *contents) identityNext(dst []byte, o *op.Operation) ([]byte, *refusal) {
	next, err := o.DecodeIdentityNext()
	if err != nil {
		return dst, invalid("", "%v", err)
	}
	if err := checkIdentityNext(o, next); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(o), string(next.Name))
	if err := c.checkNewIdentity(o, found); err != nil {
		return dst, err
	}
	if c.full.has(found, next) {
		return dst, refuseIdentity(identity.ErrExhausted, found)
	}
	counter, blocks, failed := found.counter().Next(next.Count, c.claimedValues(found, next.Separator))
	if failed != nil {
		c.full.remember(found, next, failed)
		return dst, refuseIdentity(failed, found)
	}
	c.useDatabase(o)
	if c.strict() && c.numbered.Len() > 0 {
		separator, _ := utf8.DecodeRune(next.Separator)
		c.stepOver(numberedItem{db: found.db, name: found.name, separator: separator, value: found.last + 1}, counter.Last)
	}
	c.putIdentity(found, counter)
	return op.AppendBlocks(dst, blocks), nil
}

// checkIdentityNext refuses a malformed request.
func checkIdentityNext(o *op.Operation, next op.IdentityNext) *refusal {
	if err := checkIdentity(o, next.Name); err != nil {
		return err
	}
	if next.Count < 1 || next.Count > identity.MaxCount {
		return invalid("count", "is %d, must be from 1 to %d", next.Count, identity.MaxCount)
	}
	if r, n := utf8.DecodeRune(next.Separator); n == 0 || n != len(next.Separator) || r == utf8.RuneError {
		return invalid("separator", "must be one character")
	}
	return nil
}

// checkIdentity refuses a request with a bad database or name.
func checkIdentity[T ~string | ~[]byte](o *op.Operation, name T) *refusal {
	if err := checkDatabase(o); err != nil {
		return err
	}
	return checkText("name", name, docid.MaxNameBytes)
}

// checkNewIdentity is checkNew for an identity, if it is new.
func (c *contents) checkNewIdentity(o *op.Operation, f foundIdentity) *refusal {
	if f.exists {
		return nil
	}
	return c.checkNew(o, settingMaxIdentities, c.identityCount(), "name", f.name)
}

// claimedValues returns the claimed values of an identity under a separator, as
// identity.Counter.Next wants them; nil if there are no such claims at all.
func (c *contents) claimedValues(f foundIdentity, separator []byte) func(from int64) iter.Seq[int64] {
	if c.numbered.Len() == 0 {
		return nil
	}
	sep, _ := utf8.DecodeRune(separator)
	return func(from int64) iter.Seq[int64] {
		if !c.strict() {
			from = max(from, 1)
		}
		return c.numberedFrom(numberedItem{db: f.db, name: f.name, separator: sep, value: from})
	}
}

// identitySeed moves the last used value. An unused name has 0, for expected as well. A
// hidden identity is seeded from its kept value, which is also compared with expected,
// and is shown again: a caller that does not know of it must not set it back without
// force.
func (c *contents) identitySeed(dst []byte, o *op.Operation) ([]byte, *refusal) {
	var seed raftlogv1.IdentitySeed
	if err := decodePayload(o, &seed); err != nil {
		return dst, err
	}
	if err := checkIdentity(o, seed.GetName()); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(o), seed.GetName())
	if err := c.checkNewIdentity(o, found); err != nil {
		return dst, err
	}
	counter, err := found.counter().Seed(seed.GetValue(), seed.GetForce(), seed.Expected)
	if err != nil {
		return dst, refuseIdentity(err, found)
	}
	c.useDatabase(o)
	c.putIdentity(found, counter)
	return op.AppendValue(c.appendBefore(dst, &seed, found), counter.Last), nil
}

// appendBefore appends, for a seed by force, the identity's previous state, which the
// audit log records.
func (c *contents) appendBefore(dst []byte, seed *raftlogv1.IdentitySeed, found foundIdentity) []byte {
	if !seed.GetForce() || !found.exists || c.format < rolesFormat {
		return dst
	}
	return op.AppendBefore(dst, found.last)
}

// identityDelete hides an identity, or forgets it. Only forgetting finds one
// that is hidden already.
func (c *contents) identityDelete(dst []byte, o *op.Operation) ([]byte, *refusal) {
	var del raftlogv1.IdentityDelete
	if err := decodePayload(o, &del); err != nil {
		return dst, err
	}
	if err := checkIdentity(o, del.GetName()); err != nil {
		return dst, err
	}
	found := c.findIdentity(c.databaseNumber(o), del.GetName())
	if !found.exists || found.hidden && !del.GetForget() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND, "name", "there is no identity %q", del.GetName())
	}
	if del.GetForget() {
		c.forgetIdentity(found)
	} else {
		kept := identity.Counter{Last: found.last, Hidden: true}
		if c.strict() {
			kept.Last = max(kept.Last, c.floor.names) // raiseKnown may have passed the hidden ones.
		}
		c.putIdentity(found, kept)
	}
	return op.AppendValue(dst, found.last), nil
}

// forgetIdentity removes an identity that exists.
func (c *contents) forgetIdentity(f foundIdentity) {
	c.identityTable(f.hidden).Delete(f.ref)
	c.stored.remove(hashIdentity(f.db, f.name, f.last, f.hidden))
	c.countName(f.db, f.name, -1)
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
