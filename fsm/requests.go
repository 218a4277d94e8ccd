package fsm

import (
	"crypto/sha256"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// requestChunkSize is how many request ids a chunk holds. A snapshot copies one pointer
// per chunk under the lock.
const requestChunkSize = 1024

// requestWindow remembers the results of calls with a request id, oldest first.
//
// Each has a position, counted from 0 since the cluster was formed. positions finds the
// position of a key; the chunks are a queue of the remembered ids. Chunks are
// append-only, so a snapshot needs no copy of them.
type requestWindow struct {
	positions map[[16]byte]uint64
	chunks    []*requestChunk
	// base is the position of the first entry of the first chunk, first that of
	// the oldest that is remembered, next that of the next one.
	base, first, next uint64
	// floor is the newest log index that something forgotten was applied at.
	floor uint64
	// hash is that of the remembered entries.
	hash statehash.Sum
	// answeredAgain is no part of the state: it learns of repeated calls, and may be nil.
	answeredAgain func(database string)
}

// requestChunk holds successive entries and the bytes of their results.
type requestChunk struct {
	entries []requestEntry
	data    []byte
}

// requestEntry is one remembered request id. It holds no pointer, so that the garbage
// collector does not scan a million of them.
type requestEntry struct {
	key          [16]byte
	fingerprint  uint64
	index        uint64 // the log index it was applied at
	begin, bytes uint32 // where the result is in the chunk's data
}

// result returns an entry's encoded result.
func (c *requestChunk) result(e *requestEntry) []byte {
	return c.data[e.begin : e.begin+e.bytes : e.begin+e.bytes]
}

func newRequestWindow() requestWindow {
	return requestWindow{positions: map[[16]byte]uint64{}}
}

// size returns how many request ids are remembered.
func (w *requestWindow) size() uint64 { return w.next - w.first }

// at returns the entry at a position that is remembered, and its chunk.
func (w *requestWindow) at(position uint64) (*requestChunk, *requestEntry) {
	chunk := w.chunks[(position-w.base)/requestChunkSize]
	return chunk, &chunk.entries[(position-w.base)%requestChunkSize]
}

// push appends an entry with a copy of its result.
func (w *requestWindow) push(k *op.RequestKey, index uint64, result []byte) {
	if (w.next-w.base)/requestChunkSize == uint64(len(w.chunks)) {
		w.chunks = append(w.chunks, &requestChunk{})
	}
	chunk := w.chunks[len(w.chunks)-1]
	chunk.entries = append(chunk.entries, requestEntry{
		key: k.Key, fingerprint: k.Fingerprint, index: index,
		begin: uint32(len(chunk.data)), bytes: uint32(len(result)),
	})
	chunk.data = append(chunk.data, result...)
	w.positions[k.Key] = w.next
	w.hash.Add(w.hashAt(w.next))
	w.next++
}

// pop forgets the oldest entry.
func (w *requestWindow) pop() {
	_, e := w.at(w.first)
	w.hash.Remove(w.hashAt(w.first))
	delete(w.positions, e.key)
	w.floor = e.index // Entries come in the order of the log.
	w.first++
	if w.first-w.base == requestChunkSize {
		w.chunks[0] = nil
		w.chunks = w.chunks[1:]
		w.base = w.first
	}
}

// evict forgets the oldest entries until no more than a limit are left.
func (w *requestWindow) evict(limit uint64) {
	for w.size() > limit {
		w.pop()
	}
}

// forgot reports whether an earlier attempt of a request id that is not remembered may
// have been applied: the window does not reach back to where the caller knew of none. A
// first attempt may arrive late, after its retry was applied and forgotten, so it carries
// the applied index of the node that accepted it.
func (w *requestWindow) forgot(k *op.RequestKey) bool {
	return k.Since < w.floor && (k.Retry || k.Since != 0)
}

// restore takes over a request id of a snapshot.
func (w *requestWindow) restore(m *raftlogv1.RequestRecord) error {
	k := op.RequestKey{Fingerprint: m.GetFingerprint()}
	if copy(k.Key[:], m.GetKey()) != len(k.Key) || len(m.GetKey()) != len(k.Key) {
		return corrupt("request key of %d bytes", len(m.GetKey()))
	}
	if _, twice := w.positions[k.Key]; twice {
		return corrupt("request key %x twice", k.Key)
	}
	w.push(&k, m.GetLogIndex(), m.GetResult())
	return nil
}

// hashAt returns the hash of the entry at a position.
func (w *requestWindow) hashAt(position uint64) uint64 {
	chunk, e := w.at(position)
	return hashRequest(position, e, chunk.result(e))
}

// runOnce runs an operation with a request key, unless it ran before: then it returns the
// first answer. Only success is remembered: a refused operation changed nothing, and may
// succeed at the next attempt.
func (c *contents) runOnce(dst []byte, now moment, o *op.Operation) []byte {
	if isCallers(o) {
		if !o.Named {
			return appendRefused(dst, now.index, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "request_id",
				"the request id does not say whose it is"))
		}
		o.Request.Key = ownKey(o.Request.Key, o.Principal)
	}
	if position, ok := c.requests.positions[o.Request.Key]; ok {
		return c.requests.answer(dst, now, o, position)
	}
	if c.requests.forgot(&o.Request) {
		return appendRefused(dst, now.index, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED, "request_id",
			"the first try may have been applied up to log index %d, which is forgotten", c.requests.floor))
	}
	result, applied := c.run(dst, now, o)
	if applied {
		c.requests.push(&o.Request, now.index, result)
		c.requests.evict(c.settings.requestWindow())
	}
	return result
}

// isCallers reports whether a request key is made from a caller's request id. Those of
// operations on the cluster itself are random, and their nodes' own.
func isCallers(o *op.Operation) bool { return o.Kind <= op.KindRelease }

// ownKey returns the key under which a principal's request is remembered, so that the
// same request id of two principals is two. It is a hash again: no caller can choose a
// request id that matches another principal's key.
func ownKey(key [16]byte, principal []byte) [16]byte {
	var space [128]byte
	sum := sha256.Sum256(append(append(space[:0], key[:]...), principal...))
	return [16]byte(sum[:16])
}

// answer answers a call whose request id is remembered.
func (w *requestWindow) answer(dst []byte, now moment, o *op.Operation, position uint64) []byte {
	chunk, e := w.at(position)
	if e.fingerprint != o.Request.Fingerprint {
		return appendRefused(dst, now.index, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED, "request_id",
			"the request id was used for another request"))
	}
	if w.answeredAgain != nil {
		w.answeredAgain(string(o.Database))
	}
	return append(dst, chunk.result(e)...)
}
