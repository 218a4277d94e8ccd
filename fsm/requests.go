package fsm

import (
	"container/heap"
	"crypto/sha256"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// requestShelter is for how many log entries a share protects a request id. It is counted
// in entries because no clock is to be trusted: the quickest disks take minutes for so
// many, others hours.
const requestShelter = 1 << 22

// maxPrincipalBytes bounds the name of a principal with request ids.
const maxPrincipalBytes = 1<<16 - 1

// requestWindow remembers the results of calls with a request id, in a share for each principal.
//
// A full window forgets one result for each new result: the oldest of all, if it is older than
// requestShelter; else the oldest of the principal with the most, so that a flood of a principal
// evicts its own results. With one principal both are the oldest.
//
// Invariant: a result younger than requestShelter is forgotten only while no other principal has
// more. So of n principals in a window of l ids each keeps at least its newest l/n - 1.
type requestWindow struct {
	// positions finds the position of a key in the share of its principal. A key is a hash
	// of its principal too, so it is in no other share.
	positions map[[16]byte]uint64
	// shares are the non-empty shares, by principal. A snapshot increments the epoch and shares
	// them: a share of an older epoch is copied before it changes.
	shares *table.Table[*requestShare]
	epoch  uint64
	// oldest has the share with the oldest entry first, largest that with the most.
	oldest, largest requestOrder
	// size is the number of remembered request ids.
	size uint64
	// floor is the newest log index that something forgotten of a principal without share
	// was applied at.
	floor uint64
	// newestFloor is the newest floor of those that had a share since the start. It is derived.
	newestFloor uint64
	// hash is that of the shares.
	hash statehash.Sum
	// restored is the share that the records of a snapshot are of.
	restored *requestShare
	// answeredAgain is no part of the state: it learns of repeated calls, and may be nil.
	answeredAgain func(database string)
}

func newRequestWindow() requestWindow {
	return requestWindow{
		positions: map[[16]byte]uint64{}, shares: table.New[*requestShare](),
		oldest: requestOrder{order: byAge, before: older}, largest: requestOrder{order: bySize, before: larger},
	}
}

// share returns a principal's share, or a new share.
func (w *requestWindow) share(principal []byte) *requestShare {
	if s, ok := w.shares.Get(0, string(principal)); ok {
		return s
	}
	return w.fresh(string(principal), 0, w.floor)
}

func (w *requestWindow) fresh(principal string, first, floor uint64) *requestShare {
	return &requestShare{principal: principal, id: hashPrincipal(principal), epoch: w.epoch, first: first, next: first, floor: floor}
}

// writable returns a share that may be changed, in place of a share that a snapshot may hold.
func (w *requestWindow) writable(s *requestShare) *requestShare {
	if s.epoch == w.epoch {
		return s
	}
	own := s.copy(w.epoch)
	ref, _ := w.shares.Find(0, own.principal)
	w.shares.Set(ref, own)
	w.oldest.shares[own.places[byAge]], w.largest.shares[own.places[bySize]] = own, own
	return own
}

// find reports whether a key is remembered, and returns its entry in a share, and the chunk
// of that. They are nil where a forged snapshot has the key in another share.
func (w *requestWindow) find(s *requestShare, key [16]byte) (*requestChunk, *requestEntry, bool) {
	position, known := w.positions[key]
	if known && position-s.first < s.size() {
		if chunk, e := s.at(position); e.key == key {
			return chunk, e, true
		}
	}
	return nil, nil, known
}

// push appends an entry with a copy of its result.
func (w *requestWindow) push(s *requestShare, k *op.RequestKey, index uint64, result []byte) {
	s = w.writable(s)
	w.positions[k.Key] = s.next
	w.hash.Add(s.push(k, index, result))
	w.size++
	if s.size() > 1 {
		w.largest.moved(s)
		return
	}
	w.hash.Add(s.hash())
	w.shares.Insert(table.Entry[*requestShare]{Name: s.principal, Value: s})
	heap.Push(&w.oldest, s)
	heap.Push(&w.largest, s)
}

func (w *requestWindow) pop(s *requestShare) {
	s = w.writable(s)
	w.hash.Remove(s.hash())
	key, hash := s.pop()
	w.newestFloor = max(w.newestFloor, s.floor)
	w.hash.Remove(hash)
	delete(w.positions, key)
	w.size--
	if s.size() > 0 {
		w.hash.Add(s.hash())
		w.oldest.moved(s)
		w.largest.moved(s)
		return
	}
	w.floor = max(w.floor, s.floor)
	ref, _ := w.shares.Find(0, s.principal)
	w.shares.Delete(ref)
	w.oldest.remove(s)
	w.largest.remove(s)
}

// requestsAtOnce bounds the request ids that one entry forgets after the window was lowered: the next entries
// forget the others.
const requestsAtOnce = 1000

// evict forgets request ids until limit are left, but at most most of them.
func (w *requestWindow) evict(limit, index uint64, most int) {
	for ; w.size > limit && most > 0; most-- {
		s := w.oldest.first()
		if s.oldest().index+requestShelter >= index {
			s = w.largest.first()
		}
		w.pop(s)
	}
}

// forgot reports whether an earlier attempt of a request id that is not remembered may have been applied:
// its principal's share does not reach back to the time before the first attempt. A first attempt may
// arrive late, after its retry was applied and forgotten, so it carries the applied index of the node
// that accepted it. An index that this entry has not passed is of another log, before a restore or a
// recovery, whose applied calls are unknown.
func (s *requestShare) forgot(k *op.RequestKey, index uint64) bool {
	return k.Since >= index || k.Since < s.floor && (k.Retry || k.Since != 0)
}

// forget raises the floor of all principals.
func (w *requestWindow) forget(before uint64) {
	w.floor = max(w.floor, before)
	w.shares.Ascend(0, "", func(e table.Entry[*requestShare]) bool {
		s := w.writable(e.Value)
		w.hash.Remove(s.hash())
		s.floor = max(s.floor, before)
		w.hash.Add(s.hash())
		return true
	})
}

// records are those of each principal, oldest first.
func (w *requestWindow) records() records {
	w.epoch++
	shared := w.shares.Freeze()
	shares := func(yield func(*requestShare) bool) {
		shared.Scan(func(e table.Entry[*requestShare]) bool { return yield(e.Value) })
	}
	return recordsOfEach(shares, (*requestShare).records)
}

func (w *requestWindow) restore(m *raftlogv1.RequestRecord) error {
	k := op.RequestKey{Fingerprint: m.GetFingerprint()}
	if copy(k.Key[:], m.GetKey()) != len(k.Key) || len(m.GetKey()) != len(k.Key) {
		return corrupt("request key of %d bytes", len(m.GetKey()))
	}
	if _, twice := w.positions[k.Key]; twice {
		return corrupt("request key %x twice", k.Key)
	}
	if err := w.restoreShare(m.GetShare()); err != nil {
		return err
	}
	w.push(w.restored, &k, m.GetLogIndex(), m.GetResult())
	return nil
}

// restoreShare begins a share, if a record does.
func (w *requestWindow) restoreShare(m *raftlogv1.RequestShare) error {
	if m == nil {
		if w.restored == nil {
			return corrupt("a request id of no principal")
		}
		return nil
	}
	if len(m.GetPrincipal()) > maxPrincipalBytes {
		return corrupt("request ids of a principal of %d bytes", len(m.GetPrincipal()))
	}
	if _, twice := w.shares.Get(0, string(m.GetPrincipal())); twice {
		return corrupt("request ids of %q twice", m.GetPrincipal())
	}
	w.newestFloor = max(w.newestFloor, m.GetFloor())
	w.restored = w.fresh(string(m.GetPrincipal()), m.GetFirst(), m.GetFloor())
	return nil
}

// runOnce runs an operation with a request key, unless it ran before: then it returns the first
// answer. Only success is remembered: a refused operation changed nothing, and may succeed at the
// next attempt. A request key belongs to the operation's principal; operations that nodes propose
// by themselves have none, and are remembered under the empty name.
func (c *contents) runOnce(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	if operations[o.Kind].need != 0 && !o.HasPrincipal {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "request_id",
			"the request id has no principal")
	}
	if len(o.Principal) > maxPrincipalBytes {
		return dst, invalid("principal", "has more than %d bytes", maxPrincipalBytes)
	}
	o.Request.Key = ownKey(o.Request.Key, o.Principal)
	share := c.requests.share(o.Principal)
	if chunk, e, known := c.requests.find(share, o.Request.Key); known {
		return c.requests.answer(dst, o, chunk, e)
	}
	if share.forgot(&o.Request, now.index) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED, "request_id",
			"the first try may have been applied up to log index %d, which is forgotten", max(share.floor, o.Request.Since))
	}
	result, refused := c.run(dst, now, o)
	if refused == nil {
		c.requests.evict(c.settings.requestWindow()-1, now.index, 1)
		c.requests.push(c.requests.share(o.Principal), &o.Request, now.index, result)
	}
	return result, refused
}

// ownKey returns the key under which a principal's request is remembered, so that the
// same request id of two principals is two. It is a hash again: no caller can choose a
// request id that matches another principal's key.
func ownKey(key [16]byte, principal []byte) [16]byte {
	var space [128]byte
	sum := sha256.Sum256(append(append(space[:0], key[:]...), principal...))
	return [16]byte(sum[:16])
}

// answer answers a call whose request id is remembered, in another share if e is nil.
func (w *requestWindow) answer(dst []byte, o *op.Operation, chunk *requestChunk, e *requestEntry) ([]byte, *refusal) {
	if e == nil || e.fingerprint != o.Request.Fingerprint {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED, "request_id",
			"the request id was used for another request")
	}
	if w.answeredAgain != nil {
		w.answeredAgain(string(o.Database))
	}
	return append(dst, chunk.result(e)...), nil
}
