package series

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// sum is the sum modulo 2^64 of the xxhash of each thing that a series stores. So it does
// not depend on their order, and a change of one costs two hashes. It finds bugs and
// damaged memory; it does not protect against forgery.
//
// Invariant: all that is stored is in it, once. A test computes it from scratch.
type sum uint64

func (s *sum) add(hash uint64)    { *s += sum(hash) }
func (s *sum) remove(hash uint64) { *s -= sum(hash) }

// stored distinguishes the kinds of things.
type stored byte

const (
	storedSeries stored = iota + 1
	storedScope
	storedRecord
	storedLost
)

// encoding is what is hashed: the kind, then numbers in eight bytes, and texts after their
// length. It stays on the stack for all but long texts.
type encoding []byte

type encodingSpace [160]byte

func (s *encodingSpace) begin(kind stored) encoding { return append(s[:0], byte(kind)) }

func (e encoding) number(v uint64) encoding { return binary.LittleEndian.AppendUint64(e, v) }

func (e encoding) text(t string) encoding { return append(e.number(uint64(len(t))), t...) }

func (e encoding) flag(b bool) encoding {
	if b {
		return append(e, 1)
	}
	return append(e, 0)
}

func (e encoding) sum() uint64 { return xxhash.Sum64(e) }

// Hash returns a hash of all that the series stores. Two series with the same calls, or
// one and its restored copy, have equal ones.
func (s *Series) Hash() uint64 {
	var space encodingSpace
	d := &s.definition
	e := space.begin(storedSeries).text(d.Format).text(d.TimeZone)
	e = append(e, byte(d.Reset), byte(d.Order), byte(d.OnRelease), byte(d.OnExpiry))
	e = e.number(uint64(d.ExpiresIn)).number(uint64(d.MaxOpen)).number(uint64(d.MaxKeys))
	e = e.number(uint64(s.version)).number(uint64(s.now)).flag(s.suspended)
	return uint64(s.hash) + e.sum()
}

func hashScopeName(values []string) uint64 {
	var space encodingSpace
	e := space.begin(storedScope)
	for _, v := range values {
		e = e.text(v)
	}
	return e.sum()
}

func (c *scope) hashHeader() uint64 {
	var space encodingSpace
	return space.begin(storedScope).number(c.name).number(uint64(c.lastDate)).flag(c.closed).sum()
}

// hashRecord is 0 for a record that has no state yet.
func (c *scope) hashRecord(number int64, r *record) uint64 {
	if r.state == 0 {
		return 0
	}
	var space encodingSpace
	e := space.begin(storedRecord).number(c.name).number(uint64(number)).number(uint64(r.taken)).number(uint64(r.expires))
	e = append(e.number(uint64(r.date)).flag(r.lapsed), byte(r.state), r.keyLen, r.labelLen)
	return e.text(r.text).sum()
}

func (l Lost) hash() uint64 {
	var space encodingSpace
	return space.begin(storedLost).number(uint64(l.Number)).flag(l.Released).text(l.Key).sum()
}
