package series

import "hash/maphash"

// ref is a number of a scope in one word; 0 is none, because numbers begin at 1.
type ref uint64

// numberBits is how many bits of a ref are the number's. The others are the scope's, of
// which there are at most MaxScopes.
const numberBits = 40

// maxNumber is the greatest number of a scope.
const maxNumber = 1<<numberBits - 1

func refOf(scope int, number int64) ref { return ref(scope)<<numberBits | ref(number) }

func (r ref) scope() int    { return int(r >> numberBits) }
func (r ref) number() int64 { return int64(r & (1<<numberBits - 1)) }

// shardBits decides how many tables an index has. Each grows by itself, so that no call
// waits until all keys have been moved.
const shardBits = 8

// index finds numbers by key. It keeps no key: the records have them. Go's map would take
// a key's header once more, and half as much again for its free places.
type index struct {
	// seed is random, without visible effect: no order depends on the hash.
	seed   maphash.Seed
	shards [1 << shardBits]shard
	keyOf  func(ref) string
	// len is how many keys there are, and bytes how many bytes they have.
	len, bytes int64
}

// shard is a hash table with open addressing. Its slots are a power of two.
type shard struct {
	slots []ref
	used  int
}

func newIndex(keyOf func(ref) string) index {
	return index{seed: maphash.MakeSeed(), keyOf: keyOf}
}

// place returns a key's shard, and its hash in it.
func (x *index) place(key string) (*shard, uint64) {
	h := maphash.String(x.seed, key)
	return &x.shards[h>>(64-shardBits)], h
}

// find returns a key's ref; 0 if it has none.
func (x *index) find(key string) ref {
	s, h := x.place(key)
	if s.used == 0 {
		return 0
	}
	return s.slots[x.slot(s, h, key)]
}

// slot returns the slot of a key, or the empty one in which it belongs.
func (x *index) slot(s *shard, h uint64, key string) int {
	mask := len(s.slots) - 1
	i := int(h) & mask
	for s.slots[i] != 0 && x.keyOf(s.slots[i]) != key {
		i = (i + 1) & mask
	}
	return i
}

// set stores a key's ref.
func (x *index) set(key string, r ref) {
	s, h := x.place(key)
	if (s.used+1)*5 > len(s.slots)*4 {
		x.grow(s)
	}
	i := x.slot(s, h, key)
	if s.slots[i] == 0 {
		s.used++
		x.len++
		x.bytes += int64(len(key))
	}
	s.slots[i] = r
}

// grow makes the shard twice as large.
func (x *index) grow(s *shard) {
	old := s.slots
	s.slots = make([]ref, max(4, 2*len(old)))
	for _, r := range old {
		if r != 0 {
			key := x.keyOf(r)
			_, h := x.place(key)
			s.slots[x.slot(s, h, key)] = r
		}
	}
}

// drop forgets a key that is there. The entries behind it move up, so that no search ends
// at the hole.
func (x *index) drop(key string) {
	s, h := x.place(key)
	mask := len(s.slots) - 1
	hole := x.slot(s, h, key)
	for i := (hole + 1) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		_, h := x.place(x.keyOf(s.slots[i]))
		if home := int(h) & mask; (i-home)&mask >= (i-hole)&mask {
			s.slots[hole] = s.slots[i]
			hole = i
		}
	}
	s.slots[hole] = 0
	s.used--
	x.len--
	x.bytes -= int64(len(key))
}
