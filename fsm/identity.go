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
	inTable[identityValue]
	last   int64
	hidden bool
}

func (f foundIdentity) counter() identity.Counter {
	return identity.Counter{Last: f.last, Hidden: f.hidden}
}

// identityStore has the identities. Hidden ones are separate, so that a page of a list does not step over
// them; they count as the others, as they take as much memory.
type identityStore struct {
	shown, hidden nameTable[identityValue]
}

func newIdentities(databases *databaseStore) identityStore {
	named := func(kind statehash.RecordKind) nameTable[identityValue] {
		return nameTable[identityValue]{
			Table: table.New[identityValue](), databases: databases,
			limit: settingMaxIdentities, what: "identity", field: "name",
			record: func(db uint32, name string, last identityValue) uint64 { return hashIdentity(kind, db, name, last) },
		}
	}
	return identityStore{shown: named(recordIdentity), hidden: named(recordHiddenIdentity)}
}

// find looks an identity up; the counter of an unknown name is at the floor.
func (s *identityStore) find(db uint32, name string, floor floor) foundIdentity {
	f := foundIdentity{inTable: s.shown.find(db, name)}
	if !f.exists {
		f.inTable = s.hidden.find(db, name)
		f.hidden = f.exists
	}
	f.last = int64(f.value)
	if !f.exists {
		f.last = floor.names
	}
	return f
}

// put stores the new counter of a name that find returned.
func (s *identityStore) put(f foundIdentity, now identity.Counter) {
	if f.exists && f.hidden != now.Hidden {
		s.forget(f)
		f.exists = false
	}
	s.table(now.Hidden).put(f.inTable, identityValue(now.Last))
}

func (s *identityStore) forget(f foundIdentity) { s.table(f.hidden).remove(f.inTable) }

func (s *identityStore) table(hidden bool) *nameTable[identityValue] {
	if hidden {
		return &s.hidden
	}
	return &s.shown
}

func (s *identityStore) skipAhead(by int64) int {
	ahead := func(last identityValue) identityValue { return identityValue(plus(int64(last), by)) }
	return s.shown.changeAll(ahead) + s.hidden.changeAll(ahead)
}

func (s *identityStore) records(hidden bool) records {
	m := &raftlogv1.IdentityRecord{Hidden: hidden}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Identity{Identity: m}}
	return recordsIn(s.table(hidden).Table, func(e table.Entry[identityValue]) *raftlogv1.SnapshotRecord {
		m.Database, m.Name, m.Last = e.Database, e.Name, int64(e.Value)
		return record
	})
}

func (s *identityStore) restore(m *raftlogv1.IdentityRecord) error {
	if s.table(!m.GetHidden()).find(m.GetDatabase(), m.GetName()).exists {
		return corrupt("identity %q twice", m.GetName())
	}
	return s.table(m.GetHidden()).restore(m.GetDatabase(), m.GetName(), docid.MaxNameBytes, identityValue(m.GetLast()))
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
			keys[n] = table.Key{Database: s.shown.databases.numberOf(o.Database), Name: o.Name()}
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
	if err := c.identities.shown.checkNew(o.Database, found.inTable); err != nil {
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
	if err := c.identities.shown.checkNew(o.Database, found.inTable); err != nil {
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
