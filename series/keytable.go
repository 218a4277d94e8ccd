package series

import (
	"github.com/tidwall/btree"

	"github.com/idnode/idnode/internal/statehash"
)

// keyTable has the number of each key, and the keys whose numbers were given to others.
type keyTable struct {
	index index
	lost  *btree.Map[string, lostKey]
	// lostBytes is how many bytes the lost keys have, and lostHash the sum of their hashes.
	lostBytes int64
	lostHash  statehash.Sum
}

// lostKey is what a key had.
type lostKey struct {
	number int64
	// released means that the caller gave it back.
	released bool
}

func newKeyTable(keyOf func(ref) string) keyTable {
	return keyTable{index: newIndex(keyOf), lost: &btree.Map[string, lostKey]{}}
}

// lose notes that a key's number belongs to another.
func (t *keyTable) lose(key string, l lostKey) {
	t.lost.Set(key, l)
	t.lostBytes += int64(len(key))
	t.lostHash.Add(l.hash(key))
}

// regain forgets that a key had a number.
func (t *keyTable) regain(key string) {
	if l, ok := t.lost.Delete(key); ok {
		t.lostBytes -= int64(len(key))
		t.lostHash.Remove(l.hash(key))
	}
}

// regainAll forgets all keys whose numbers were given to others.
func (t *keyTable) regainAll() { t.lost, t.lostBytes, t.lostHash = &btree.Map[string, lostKey]{}, 0, 0 }

// Keys returns how many keys the series knows, also lost ones, and how many bytes these have.
func (t *keyTable) Keys() (count, bytes int64) {
	return t.index.len + int64(t.lost.Len()), t.index.bytes + t.lostBytes
}

// Knows reports whether a key has a number, or had one that another got.
func (t *keyTable) Knows(key string) bool {
	_, lost := t.lost.Get(key)
	return lost || t.index.find(key) != 0
}
