package fsm

import (
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
)

// named is a series or a pool, and where it is.
type named[V any] struct {
	db   uint32
	name string
	is   V
	// hash and parts are what of it is in the store's sums, names and bytes what is in
	// the database's use.
	hash                uint64
	parts, names, bytes int64
}

// namedStore has by name what has parts of its own: series with their keys, pools with their workers.
//
// Invariant: hash, parts and the database's use equal the sums over what is present. A caller
// of a method that can change one must call changed, even after an error.
type namedStore[V interface{ Hash() uint64 }] struct {
	// kind is that of its records, and what the word for one.
	kind statehash.Kind
	what string
	// size returns how many parts one has, and how many names it counts as beside its own.
	size      func(V) (parts, names, bytes int64)
	byName    *table.Table[*named[V]]
	databases *databaseStore
	hash      statehash.Sum
	parts     int64
}

func newNamedStore[V interface{ Hash() uint64 }](
	kind statehash.Kind, what string, databases *databaseStore, size func(V) (parts, names, bytes int64),
) namedStore[V] {
	return namedStore[V]{kind: kind, what: what, size: size, byName: table.New[*named[V]](), databases: databases}
}

// find returns nil if there is none.
func (s *namedStore[V]) find(db uint32, name string) *named[V] {
	i, _ := s.byName.Get(db, name)
	return i
}

// all yields all, in the order of databases and of the names' bytes.
func (s *namedStore[V]) all(yield func(*named[V]) bool) {
	s.byName.Ascend(0, "", func(e table.Entry[*named[V]]) bool { return yield(e.Value) })
}

// add stores what does not exist.
func (s *namedStore[V]) add(db uint32, name string, is V) *named[V] {
	i := &named[V]{db: db, name: name, is: is}
	s.byName.Insert(table.Entry[*named[V]]{Database: db, Name: name, Value: i})
	s.databases.grow(db, 1, int64(len(name)))
	s.changed(i)
	return i
}

func (s *namedStore[V]) remove(i *named[V]) {
	ref, _ := s.byName.Find(i.db, i.name)
	s.byName.Delete(ref)
	s.hash.Remove(i.hash)
	s.parts -= i.parts
	s.databases.grow(i.db, -i.names-1, -i.bytes-int64(len(i.name)))
}

// changed takes what one is now into the sums.
func (s *namedStore[V]) changed(i *named[V]) {
	s.hash.Remove(i.hash)
	i.hash = hashNamed(s.kind, i.db, i.name, i.is.Hash())
	s.hash.Add(i.hash)
	parts, names, bytes := s.size(i.is)
	s.databases.grow(i.db, names-i.names, bytes-i.bytes)
	s.parts += parts - i.parts
	i.parts, i.names, i.bytes = parts, names, bytes
}

func (s *namedStore[V]) changeAll(change func(V)) {
	for i := range s.all {
		change(i.is)
		s.changed(i)
	}
}

// checkRestore refuses a name in a snapshot.
func (s *namedStore[V]) checkRestore(db uint32, name string) error {
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

func freezeAll[V interface{ Hash() uint64 }, F any](s *namedStore[V], freeze func(V) F) []frozen[F] {
	all := make([]frozen[F], 0, s.byName.Len())
	for i := range s.all {
		all = append(all, frozen[F]{i.db, i.name, freeze(i.is)})
	}
	return all
}
