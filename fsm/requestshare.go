package fsm

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// requestShare has the remembered request ids of a principal, oldest first.
//
// Each has a position, counted from 0 since the share began. The chunks are a queue of the ids.
// Chunks are append-only, so a copy of a share shares all but the last.
type requestShare struct {
	principal string
	// id is a hash of the principal, used in the state's hash.
	id uint64
	// epoch is that of the window in which the share began or was copied.
	epoch  uint64
	chunks []*requestChunk
	// first is the position of the oldest entry, next that of the next entry.
	first, next uint64
	// floor is the newest log index that something forgotten of the principal may have been applied at.
	floor uint64
	// places are where the share is in the window's orders.
	places [shareOrders]int
}

// A chunk holds a quarter of its share, so that few forgotten results are kept, but at most this many.
// The first change after a snapshot copies one pointer per chunk, and the last chunk.
const requestChunkSize = 1024

// requestChunk holds successive entries and the bytes of their results.
type requestChunk struct {
	base    uint64 // the position of its first entry
	entries []requestEntry
	data    []byte
}

// requestEntry is a remembered request id. It holds no pointer, so that the garbage collector
// does not scan a million of them.
type requestEntry struct {
	key          [16]byte
	fingerprint  uint64
	index        uint64 // the log index it was applied at
	begin, bytes uint32 // where the result is in the chunk's data
}

func (c *requestChunk) result(e *requestEntry) []byte {
	return c.data[e.begin : e.begin+e.bytes : e.begin+e.bytes]
}

func (s *requestShare) size() uint64 { return s.next - s.first }

// at returns the entry at a position that is remembered, and its chunk.
func (s *requestShare) at(position uint64) (*requestChunk, *requestEntry) {
	begin := s.chunks[0].base
	after := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].base-begin > position-begin })
	chunk := s.chunks[after-1]
	return chunk, &chunk.entries[position-chunk.base]
}

// oldest returns the oldest entry, which is in the first chunk.
func (s *requestShare) oldest() *requestEntry {
	return &s.chunks[0].entries[s.first-s.chunks[0].base]
}

// push appends an entry with a copy of its result, and returns its hash.
func (s *requestShare) push(k *op.RequestKey, index uint64, result []byte) uint64 {
	chunk := s.room()
	chunk.entries = append(chunk.entries, requestEntry{
		key: k.Key, fingerprint: k.Fingerprint, index: index,
		begin: uint32(len(chunk.data)), bytes: uint32(len(result)),
	})
	chunk.data = append(chunk.data, result...)
	s.next++
	return hashRequest(s.id, s.next-1, &chunk.entries[len(chunk.entries)-1], result)
}

func (s *requestShare) room() *requestChunk {
	if n := len(s.chunks); n > 0 && uint64(len(s.chunks[n-1].entries)) < min(s.size()/4, requestChunkSize) {
		return s.chunks[n-1]
	}
	chunk := &requestChunk{base: s.next}
	s.chunks = append(s.chunks, chunk)
	return chunk
}

// pop forgets the oldest entry, and returns its key and its hash.
func (s *requestShare) pop() (key [16]byte, hash uint64) {
	chunk, e := s.chunks[0], s.oldest()
	hash = hashRequest(s.id, s.first, e, chunk.result(e))
	s.floor = max(s.floor, e.index)
	s.first++
	if s.first == chunk.base+uint64(len(chunk.entries)) {
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	}
	return e.key, hash
}

// copy returns a share of an epoch with a last chunk of its own, to append to.
func (s *requestShare) copy(epoch uint64) *requestShare {
	v := *s
	v.epoch, v.chunks = epoch, slices.Clone(s.chunks)
	last := *v.chunks[len(v.chunks)-1]
	v.chunks[len(v.chunks)-1] = &last
	return &v
}

// records are those of a share that no longer changes. They reuse one record.
func (s *requestShare) records() records {
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		m := &raftlogv1.RequestRecord{Share: &raftlogv1.RequestShare{Principal: []byte(s.principal), First: s.first, Floor: s.floor}}
		record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Request{Request: m}}
		skip := s.first - s.chunks[0].base // Those are forgotten.
		for _, chunk := range s.chunks {
			for i := range chunk.entries[skip:] {
				e := &chunk.entries[skip:][i]
				m.Key, m.Fingerprint, m.Result, m.LogIndex = e.key[:], e.fingerprint, chunk.result(e), e.index
				if !yield(record) {
					return
				}
				m.Share = nil
			}
			skip = 0
		}
	}
}

// hash covers the share's fields other than its entries.
func (s *requestShare) hash() uint64 { return hashRequestShare(s.id, s.floor) }

// The orders of a window's shares.
const (
	byAge = iota
	bySize
	shareOrders
)

// requestOrder is a heap of shares that are not empty.
type requestOrder struct {
	order  int
	before func(a, b *requestShare) bool
	shares []*requestShare
}

// older reports whether a share's oldest entry is older than another's. The principal
// decides within one log entry.
func older(a, b *requestShare) bool {
	return cmp.Or(cmp.Compare(a.oldest().index, b.oldest().index), cmp.Compare(a.principal, b.principal)) < 0
}

// larger reports whether a share has more entries than another, or as many and is older.
func larger(a, b *requestShare) bool {
	if a.size() != b.size() {
		return a.size() > b.size()
	}
	return older(a, b)
}

func (o *requestOrder) first() *requestShare { return o.shares[0] }

// moved puts a share that has changed in its place.
func (o *requestOrder) moved(s *requestShare) { heap.Fix(o, s.places[o.order]) }

// remove removes a share, which may be empty.
func (o *requestOrder) remove(s *requestShare) { heap.Remove(o, s.places[o.order]) }

func (o *requestOrder) Len() int { return len(o.shares) }

func (o *requestOrder) Less(i, j int) bool { return o.before(o.shares[i], o.shares[j]) }

func (o *requestOrder) Swap(i, j int) {
	o.shares[i], o.shares[j] = o.shares[j], o.shares[i]
	o.shares[i].places[o.order], o.shares[j].places[o.order] = i, j
}

func (o *requestOrder) Push(x any) {
	s := x.(*requestShare)
	s.places[o.order] = len(o.shares)
	o.shares = append(o.shares, s)
}

func (o *requestOrder) Pop() any {
	last := len(o.shares) - 1
	s := o.shares[last]
	o.shares[last] = nil
	o.shares = o.shares[:last]
	return s
}
