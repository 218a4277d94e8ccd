package fsm

import (
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
)

// nameTable has the value of each name of a kind. It keeps their hash, and counts them in their databases.
type nameTable[V any] struct {
	*table.Table[V]
	databases *databaseStore
	// limit bounds the names of the kind, what is the word for a name, and field the operation's field
	// with it.
	limit       settingID
	what, field string
	// record returns the hash of a name with its value.
	record func(db uint32, name string, value V) uint64
	hash   statehash.Sum
}

// inTable is a name and its entry in a table.
type inTable[V any] struct {
	db     uint32
	name   string
	exists bool
	// value and ref are of a name that exists.
	value V
	ref   table.Ref
}

func (t *nameTable[V]) find(db uint32, name string) inTable[V] {
	p := inTable[V]{db: db, name: name}
	if p.ref, p.exists = t.Find(db, name); p.exists {
		p.value = t.Value(p.ref)
	}
	return p
}

// put stores the new value of a name that find returned.
func (t *nameTable[V]) put(p inTable[V], value V) {
	if p.exists {
		t.hash.Remove(t.record(p.db, p.name, p.value))
		t.Set(p.ref, value)
	} else {
		t.Insert(table.Entry[V]{Database: p.db, Name: p.name, Value: value})
		t.databases.count(t.limit, p.db, p.name, 1)
	}
	t.hash.Add(t.record(p.db, p.name, value))
}

// remove removes a name that exists.
func (t *nameTable[V]) remove(p inTable[V]) {
	t.Delete(p.ref)
	t.hash.Remove(t.record(p.db, p.name, p.value))
	t.databases.count(t.limit, p.db, p.name, -1)
}

// changeAll changes all values, and returns their number.
func (t *nameTable[V]) changeAll(change func(V) V) int {
	t.Ascend(0, "", func(e table.Entry[V]) bool {
		t.put(t.find(e.Database, e.Name), change(e.Value))
		return true
	})
	return t.Len()
}

// checkNew is databases.checkNew for a name that does not exist.
func (t *nameTable[V]) checkNew(database []byte, p inTable[V]) *refusal {
	if p.exists {
		return nil
	}
	return t.databases.checkNew(database, t.limit, t.field, p.name)
}

// restore stores a name of a snapshot, with at most so many bytes.
func (t *nameTable[V]) restore(db uint32, name string, most int, value V) error {
	if err := t.databases.restoreName(db, t.what, name, most); err != nil {
		return err
	}
	if t.Append(table.Entry[V]{Database: db, Name: name, Value: value}) {
		t.databases.count(t.limit, db, name, 1)
		t.hash.Add(t.record(db, name, value))
		return nil
	}
	p := t.find(db, name)
	if p.exists {
		return corrupt("%s %q twice", t.what, name)
	}
	t.put(p, value)
	return nil
}
