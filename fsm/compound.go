package fsm

import (
	"iter"
	"sync"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
)

// freezable is the value in a compoundStore. The result of Freeze is immutable, even if the value
// changes.
type freezable[F any] interface {
	Hash() uint64
	Freeze() F
}

// compound is a series or a pool, a value with parts of its own, and where it is.
type compound[V freezable[F], F any] struct {
	db   uint32
	name string
	is   V
	// epoch is the store's epoch of the last change. frozen is the value before that, once another
	// compound has replaced this one: then only a snapshot has it.
	epoch  uint64
	frozen *F
	// hash and parts are its part in the store's sums, names and bytes its part in the database's
	// use.
	hash                uint64
	parts, names, bytes int64
}

// compoundStore holds, by name, values with parts of their own: series with their keys, pools with their
// workers.
//
// A snapshot increments the epoch and shares the table. A value's first change in an epoch freezes it
// for the snapshot; the other values are frozen when the snapshot is written.
//
// Invariant: hash, parts and the database's use equal the sums over the values present. A value of an
// older epoch does not change.
type compoundStore[V freezable[F], F any] struct {
	// kind is the kind of the records, and what the word for a value.
	kind statehash.RecordKind
	what string
	// size returns the number of a value's parts, and the names, and their bytes, that it counts
	// beside its own.
	size      func(V) (parts, names, bytes int64)
	byName    *table.Table[*compound[V, F]]
	epoch     uint64
	databases *databaseStore
	hash      statehash.Sum
	parts     int64
}

func newCompoundStore[V freezable[F], F any](
	kind statehash.RecordKind, what string, databases *databaseStore, size func(V) (parts, names, bytes int64),
) compoundStore[V, F] {
	return compoundStore[V, F]{kind: kind, what: what, size: size, byName: table.New[*compound[V, F]](), databases: databases}
}

// find returns nil if there is none.
func (s *compoundStore[V, F]) find(db uint32, name string) *compound[V, F] {
	i, _ := s.byName.Get(db, name)
	return i
}

// all yields all, in the order of databases and of the names' bytes.
func (s *compoundStore[V, F]) all(yield func(*compound[V, F]) bool) {
	s.byName.Ascend(0, "", func(e table.Entry[*compound[V, F]]) bool { return yield(e.Value) })
}

// add stores a new value; the name must be free.
func (s *compoundStore[V, F]) add(db uint32, name string, is V) *compound[V, F] {
	i := &compound[V, F]{db: db, name: name, is: is, epoch: s.epoch}
	s.byName.Insert(table.Entry[*compound[V, F]]{Database: db, Name: name, Value: i})
	s.databases.grow(db, 1, int64(len(name)))
	s.changed(i)
	return i
}

func (s *compoundStore[V, F]) remove(i *compound[V, F]) {
	ref, _ := s.byName.Find(i.db, i.name)
	s.byName.Delete(ref)
	s.hash.Remove(i.hash)
	s.parts -= i.parts
	s.databases.grow(i.db, -i.names-1, -i.bytes-int64(len(i.name)))
}

// change changes a value, and updates the sums, even after an error.
func (s *compoundStore[V, F]) change(i *compound[V, F], change func(V) error) error {
	i = s.writable(i)
	err := change(i.is)
	s.changed(i)
	return err
}

// writable returns a value that may be changed: the old one, frozen, stays with the snapshot.
func (s *compoundStore[V, F]) writable(i *compound[V, F]) *compound[V, F] {
	if i.epoch == s.epoch {
		return i
	}
	now, was := *i, i.is.Freeze()
	now.epoch, i.frozen = s.epoch, &was
	ref, _ := s.byName.Find(i.db, i.name)
	s.byName.Set(ref, &now)
	return &now
}

// changed updates the sums after a change of a value.
func (s *compoundStore[V, F]) changed(i *compound[V, F]) {
	s.hash.Remove(i.hash)
	i.hash = hashNamed(s.kind, i.db, i.name, i.is.Hash())
	s.hash.Add(i.hash)
	parts, names, bytes := s.size(i.is)
	s.databases.grow(i.db, names-i.names, bytes-i.bytes)
	s.parts += parts - i.parts
	i.parts, i.names, i.bytes = parts, names, bytes
}

func (s *compoundStore[V, F]) changeAll(change func(V)) {
	for i := range s.all {
		_ = s.change(i, func(is V) error { // It never fails.
			change(is)
			return nil
		})
	}
}

// checkRestore refuses a name in a snapshot.
func (s *compoundStore[V, F]) checkRestore(db uint32, name string) error {
	if err := s.databases.restoreName(db, s.what, name, docid.MaxNameBytes); err != nil {
		return err
	}
	if s.find(db, name) != nil {
		return corrupt("%s %q twice", s.what, name)
	}
	return nil
}

// frozen is a series or a pool of a snapshot.
type frozen[F any] struct {
	db   uint32
	name string
	is   F
}

// frozenAtOnce bounds the values frozen in one step, during which nothing is applied.
const frozenAtOnce = 64

// freezeAll returns all as they are now, in the order of all. They are frozen as they are asked for,
// under the state's lock.
func (s *compoundStore[V, F]) freezeAll(lock sync.Locker) iter.Seq[frozen[F]] {
	s.epoch++
	shared := s.byName.Freeze()
	return func(yield func(frozen[F]) bool) {
		some, goesOn := make([]*compound[V, F], 0, frozenAtOnce), true
		pass := func() {
			for _, f := range freezeSome(lock, some) {
				goesOn = goesOn && yield(f)
			}
			some = some[:0]
		}
		shared.Scan(func(e table.Entry[*compound[V, F]]) bool {
			if some = append(some, e.Value); len(some) == frozenAtOnce {
				pass()
			}
			return goesOn
		})
		pass()
	}
}

func freezeSome[V freezable[F], F any](lock sync.Locker, some []*compound[V, F]) []frozen[F] {
	lock.Lock()
	defer lock.Unlock()
	all := make([]frozen[F], len(some))
	for i, n := range some {
		all[i] = frozen[F]{db: n.db, name: n.name}
		if n.frozen != nil {
			all[i].is = *n.frozen
		} else {
			all[i].is = n.is.Freeze()
		}
	}
	return all
}
