package series

import "hash/maphash"

// ref is a number of a scope in one word; 0 means no number, because numbers begin at 1.
type ref uint64

// numberBits is how many bits of a ref are the number's. The scope, of which there are at
// most MaxScopes, has those up to refBits.
const (
	numberBits = 40
	refBits    = 60
)

// maxNumber is the greatest number of a scope.
const maxNumber = 1<<numberBits - 1

func refOf(scope int32, number int64) ref { return ref(scope)<<numberBits | ref(number) }

func (r ref) scope() int32  { return int32(r >> numberBits) }
func (r ref) number() int64 { return int64(r & (1<<numberBits - 1)) }

// shardBits decides how many tables an index has. Each grows by itself, so that no call
// waits until all keys have been moved. The first fewKeys keys need one.
const (
	shardBits = 8
	fewKeys   = 256
)

// index finds numbers by key. It keeps no key: the records have them. Go's map would take
// a key's header once more, and half as much again for its free places.
type index struct {
	// seed is random, without visible effect: no order depends on the hash.
	seed maphash.Seed
	few  shard
	// shards are instead of few, once there are more keys.
	shards *[1 << shardBits]shard
	keyOf  func(ref) string
	// len is how many keys there are, and bytes how many bytes they have.
	len, bytes int64
}

// slot is a ref and, above it, some bits of its key's hash: most slots of other keys are
// passed over without a look at their records, each of which is several reads of memory.
type slot uint64

func slotOf(r ref, h uint64) slot { return slot(r) | hashOf(h) }

// hashOf returns the bits of a hash that a slot has. They are not those of the shard, nor
// the lowest ones, which are the place.
func hashOf(h uint64) slot { return slot(h >> (refBits - shardBits) << refBits) }

func (s slot) ref() ref   { return ref(s & (1<<refBits - 1)) }
func (s slot) hash() slot { return s &^ (1<<refBits - 1) }

// shard is a hash table with open addressing. Its slots are a power of two.
type shard struct {
	slots []slot
	used  int
}

func newIndex(keyOf func(ref) string) index {
	return index{seed: maphash.MakeSeed(), keyOf: keyOf}
}

// shardOf returns a key's shard, and its hash in it.
func (x *index) shardOf(key string) (*shard, uint64) {
	h := maphash.String(x.seed, key)
	if x.shards == nil {
		return &x.few, h
	}
	return &x.shards[h>>(64-shardBits)], h
}

// find returns a key's ref; 0 if it has none.
func (x *index) find(key string) ref {
	s, h := x.shardOf(key)
	if s.used == 0 {
		return 0
	}
	return s.slots[x.slot(s, h, key)].ref()
}

// slot returns the slot of a key, or the empty one in which it belongs.
func (x *index) slot(s *shard, h uint64, key string) int {
	mask := len(s.slots) - 1
	i := int(h) & mask
	for s.slots[i] != 0 && (s.slots[i].hash() != hashOf(h) || x.keyOf(s.slots[i].ref()) != key) {
		i = (i + 1) & mask
	}
	return i
}

func (x *index) set(key string, r ref) {
	if x.shards == nil && x.few.used == fewKeys {
		x.spread()
	}
	s, h := x.shardOf(key)
	if (s.used+1)*5 > len(s.slots)*4 {
		x.grow(s)
	}
	i := x.slot(s, h, key)
	if s.slots[i] == 0 {
		s.used++
		x.len++
		x.bytes += int64(len(key))
	}
	s.slots[i] = slotOf(r, h)
}

// spread moves all keys from one shard into many.
func (x *index) spread() {
	few := x.few.slots
	x.few, x.shards, x.len, x.bytes = shard{}, new([1 << shardBits]shard), 0, 0
	for _, moved := range few {
		if moved != 0 {
			x.set(x.keyOf(moved.ref()), moved.ref())
		}
	}
}

func (x *index) grow(s *shard) {
	old := s.slots
	s.slots = make([]slot, max(4, 2*len(old)))
	for _, moved := range old {
		if moved != 0 {
			key := x.keyOf(moved.ref())
			_, h := x.shardOf(key)
			s.slots[x.slot(s, h, key)] = moved
		}
	}
}

// drop forgets a key that is there. The entries behind it move up: no search ends at the hole.
func (x *index) drop(key string) {
	s, h := x.shardOf(key)
	mask := len(s.slots) - 1
	hole := x.slot(s, h, key)
	for i := (hole + 1) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		_, h := x.shardOf(x.keyOf(s.slots[i].ref()))
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
