package fsm

import (
	"errors"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// identityValue is the last used value of an identity. Its table decides whether it is
// hidden.
type identityValue int64

type foundIdentity struct {
	db     uint32
	name   string
	last   int64
	hidden bool
	exists bool
	// ref is where it lies in its table, if it exists.
	ref table.Ref
}

func (f foundIdentity) counter() identity.Counter {
	return identity.Counter{Last: f.last, Hidden: f.hidden}
}

type identityStore struct {
	// shown are the identities that are not hidden. Hidden ones are separate, so that a page of a
	// list does not step over them.
	shown, hidden *table.Table[identityValue]
	databases     *databaseStore
	hash          statehash.Sum
}

// find looks an identity up; the counter of an unknown name is at the floor.
func (s *identityStore) find(db uint32, name string, floor floor) foundIdentity {
	f := foundIdentity{db: db, name: name, last: floor.names}
	if f.ref, f.exists = s.shown.Find(db, name); !f.exists {
		f.ref, f.exists = s.hidden.Find(db, name)
		f.hidden = f.exists
	}
	if f.exists {
		f.last = int64(s.table(f.hidden).Value(f.ref))
	}
	return f
}

// put stores the new counter of what find returned.
func (s *identityStore) put(f foundIdentity, now identity.Counter) {
	if f.exists && f.hidden == now.Hidden {
		s.hash.Remove(hashIdentity(f.db, f.name, f.last, f.hidden))
		s.table(f.hidden).Set(f.ref, identityValue(now.Last))
		s.hash.Add(hashIdentity(f.db, f.name, now.Last, now.Hidden))
		return
	}
	if f.exists {
		s.forget(f)
	}
	s.add(f.db, f.name, now)
}

// add stores an identity that does not exist.
func (s *identityStore) add(db uint32, name string, now identity.Counter) {
	s.table(now.Hidden).Insert(table.Entry[identityValue]{Database: db, Name: name, Value: identityValue(now.Last)})
	s.databases.count(db, name, 1)
	s.hash.Add(hashIdentity(db, name, now.Last, now.Hidden))
}

func (s *identityStore) forget(f foundIdentity) {
	s.table(f.hidden).Delete(f.ref)
	s.hash.Remove(hashIdentity(f.db, f.name, f.last, f.hidden))
	s.databases.count(f.db, f.name, -1)
}

func (s *identityStore) table(hidden bool) *table.Table[identityValue] {
	if hidden {
		return s.hidden
	}
	return s.shown
}

// count counts identities, including hidden ones: they take as much memory.
func (s *identityStore) count() int { return s.shown.Len() + s.hidden.Len() }

// checkNew is databases.checkNew for an identity, if it is new.
func (s *identityStore) checkNew(database []byte, f foundIdentity) *refusal {
	if f.exists {
		return nil
	}
	return s.databases.checkNew(database, settingMaxIdentities, s.count(), "name", f.name)
}

// eachFrom calls f for the identities of a kind from a cursor on, with their values.
func (s *identityStore) eachFrom(from floorCursor, f func(k floorCursor, used int64) bool) {
	s.table(from.kind == knownHidden).Ascend(from.db, from.name, func(e table.Entry[identityValue]) bool {
		return f(floorCursor{from.kind, e.Database, e.Name}, int64(e.Value))
	})
}

func (s *identityStore) raise(k floorCursor, to int64) {
	found := s.find(k.db, k.name, floor{})
	s.put(found, identity.Counter{Last: to, Hidden: found.hidden})
}

func (s *identityStore) skipAhead(by int64) int {
	for _, hidden := range []bool{false, true} {
		s.table(hidden).Freeze().Scan(func(e table.Entry[identityValue]) bool {
			found := s.find(e.Database, e.Name, floor{})
			s.put(found, identity.Counter{Last: plus(found.last, by), Hidden: hidden})
			return true
		})
	}
	return s.count()
}

func (s *identityStore) restore(m *raftlogv1.IdentityRecord) error {
	if err := s.databases.restoreName(m.GetDatabase(), "identity", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	if s.find(m.GetDatabase(), m.GetName(), floor{}).exists {
		return corrupt("identity %q twice", m.GetName())
	}
	s.add(m.GetDatabase(), m.GetName(), identity.Counter{Last: m.GetLast(), Hidden: m.GetHidden()})
	return nil
}

// manyNames is as many as do not fit into the processor's caches.
const manyNames = 1 << 14

// warm prefetches the identities of the next operations.
func (s *identityStore) warm(operations [][]byte) {
	if s.shown.Len() < manyNames || len(operations) == 1 {
		return
	}
	var keys [table.Ahead]table.Key
	n := 0
	for _, data := range operations {
		if o, err := op.Decode(data); err == nil && o.Kind == op.KindIdentityNext {
			keys[n] = table.Key{Database: s.databases.numberOf(o.Database), Name: o.Name()}
			n++
		}
	}
	s.shown.Warm(keys[:n])
}

func (c *contents) identityNext(dst []byte, _ moment, o op.Operation) ([]byte, *refusal) {
	next, err := o.DecodeIdentityNext()
	if err != nil {
		return dst, invalid("", "%v", err)
	}
	if err := checkIdentityNext(next); err != nil {
		return dst, err
	}
	found := c.identities.find(c.databases.numberOf(o.Database), string(next.Name), c.floor)
	if err := c.identities.checkNew(o.Database, found); err != nil {
		return dst, err
	}
	if c.claims.full.has(found, next) {
		return dst, refuseIdentity(identity.ErrExhausted, found)
	}
	counter, blocks, failed := found.counter().Next(next.Count, c.claims.claimedFrom(found, next.Separator))
	if failed != nil {
		c.claims.full.remember(found, next, failed)
		return dst, refuseIdentity(failed, found)
	}
	c.databases.use(o.Database)
	if c.claims.numbered.Len() > 0 {
		separator, _ := utf8.DecodeRune(next.Separator)
		c.claims.stepOver(numberedItem{db: found.db, name: found.name, separator: separator, value: found.last + 1}, counter.Last)
	}
	c.identities.put(found, counter)
	return op.AppendBlocks(dst, blocks), nil
}

func checkIdentityNext(next op.IdentityNext) *refusal {
	if err := checkText("name", next.Name, docid.MaxNameBytes); err != nil {
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

// identitySeed moves the last used value. An unused name has 0, for expected as well. A
// hidden identity is seeded from its kept value, which is also compared with expected,
// and is shown again: a caller that does not know of it must not set it back without
// force.
func (c *contents) identitySeed(dst []byte, _ moment, o op.Operation, seed *raftlogv1.IdentitySeed) ([]byte, *refusal) {
	if err := checkText("name", seed.GetName(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	found := c.identities.find(c.databases.numberOf(o.Database), seed.GetName(), c.floor)
	if err := c.identities.checkNew(o.Database, found); err != nil {
		return dst, err
	}
	counter, err := found.counter().Seed(seed.GetValue(), seed.GetForce(), seed.Expected)
	if err != nil {
		return dst, refuseIdentity(err, found)
	}
	if counter.Last > found.last {
		c.claims.invalidateSteppedOver(found, found.last+1, counter.Last)
	}
	c.databases.use(o.Database)
	c.identities.put(found, counter)
	if found.exists {
		dst = op.AppendBefore(dst, found.last) // The audit log records it.
	}
	return op.AppendValue(dst, counter.Last), nil
}

// identityDelete hides an identity, or forgets it. Only forgetting finds a hidden identity.
func (c *contents) identityDelete(dst []byte, _ moment, o op.Operation, del *raftlogv1.IdentityDelete) ([]byte, *refusal) {
	if err := checkText("name", del.GetName(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	found := c.identities.find(c.databases.numberOf(o.Database), del.GetName(), c.floor)
	if !found.exists || found.hidden && !del.GetForget() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND, "name", "there is no identity %.200q", del.GetName())
	}
	if del.GetForget() {
		c.identities.forget(found)
	} else {
		last := max(found.last, c.floor.names) // raiseKnown may have passed the hidden identities.
		c.identities.put(found, identity.Counter{Last: last, Hidden: true})
	}
	return op.AppendValue(dst, found.last), nil
}

func refuseIdentity(err error, f foundIdentity) *refusal {
	switch {
	case errors.Is(err, identity.ErrExhausted):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "count",
			"identity %.200q is at %d; not enough values are left", f.name, f.last)
	case errors.Is(err, identity.ErrConflict):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected",
			"identity %.200q is at %d", f.name, f.last)
	default:
		return invalid("", "%v", err)
	}
}
