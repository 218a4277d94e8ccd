// Package statehash hashes replicated state, so that nodes can compare theirs.
package statehash

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Sum is the hash of a state: the sum modulo 2^64 of the xxhash of each record that the
// state consists of. So it does not depend on the order of the records, and a change of
// one costs two hashes, whatever the size of the state. It finds bugs and damaged memory;
// it does not protect against forgery.
//
// Invariant: everything that is stored is in it, once. Tests of its owners compute it from
// scratch and compare.
type Sum uint64

// Add takes in a record's hash.
func (s *Sum) Add(record uint64) { *s += Sum(record) }

// Remove takes a record's hash out.
func (s *Sum) Remove(record uint64) { *s -= Sum(record) }

// RecordKind distinguishes the kinds of records of one state.
type RecordKind byte

// Record is a record's canonical encoding: the kind, then numbers in eight bytes, and texts
// after their length. In a Space it stays on the stack for all but long texts.
type Record []byte

// Space is where a record is built.
type Space [128]byte

// Begin begins a record in the space.
func (s *Space) Begin(kind RecordKind) Record { return append(s[:0], byte(kind)) }

// Number appends a number.
func (r Record) Number(v uint64) Record { return binary.LittleEndian.AppendUint64(r, v) }

// Text appends a text.
func (r Record) Text(s string) Record { return append(r.Number(uint64(len(s))), s...) }

// Data appends bytes, as if they were a text.
func (r Record) Data(b []byte) Record { return append(r.Number(uint64(len(b))), b...) }

// Flag appends a flag, in one byte.
func (r Record) Flag(b bool) Record {
	if b {
		return append(r, 1)
	}
	return append(r, 0)
}

// Hash returns the record's hash.
func (r Record) Hash() uint64 { return xxhash.Sum64(r) }
