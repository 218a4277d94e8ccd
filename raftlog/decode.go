package raftlog

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// DecodeEntry decodes an entry. The result's byte slices are views into data.
//
// Errors: *UnknownFormatError for a format newer than FormatVersion, else an
// error that wraps ErrCorrupt.
func DecodeEntry(data []byte) (Entry, error) {
	return DecodeEntryUpTo(data, FormatVersion)
}

// DecodeEntryUpTo is DecodeEntry for a reader that knows formats up to newest only, or
// for a test of a later release: all formats so far have the same envelope.
func DecodeEntryUpTo(data []byte, newest uint32) (Entry, error) {
	if err := checkFormat(data, newest); err != nil {
		return Entry{}, err
	}
	// Counting first costs a walk over the lengths, and saves growing the
	// slices: an entry of any size takes two allocations.
	counts, err := walkEntry(data, nil, nil)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Groups: make([]Group, 0, counts.groups)}
	operations := make([][]byte, 0, counts.operations)
	if _, err := walkEntry(data, &entry, &operations); err != nil {
		return Entry{}, err
	}
	return entry, nil
}

// checkFormat reads only the format, which is the first field in every format: the rest
// of a newer one may be unreadable.
func checkFormat(data []byte, newest uint32) error {
	if len(data) > MaxEntryBytes {
		return corrupt("entry of %d bytes, at most %d", len(data), MaxEntryBytes)
	}
	r := reader{rest: data}
	if r.next() != entryFormat {
		return corrupt("entry without a format")
	}
	format := r.uint32()
	if r.err != nil {
		return r.err
	}
	if format > newest {
		return &UnknownFormatError{What: "log entry", Format: format, Known: newest}
	}
	return nil
}

// counts is how much room the decoded entry needs.
type counts struct{ groups, operations int }

// walkEntry checks data and counts what is in it; it stores what it finds if
// entry is set.
func walkEntry(data []byte, entry *Entry, operations *[][]byte) (counts, error) {
	var found counts
	var header Header
	r := reader{rest: data}
	for r.more() {
		switch r.next() {
		case entryFormat:
			header.Format = r.uint32()
		case entryClusterID:
			header.ClusterID = r.bytes(MaxClusterIDBytes)
		case entryTime:
			header.TimeUnixNano = int64(r.varint())
		case entryGroups:
			r.walkGroup(r.repeated(), &found, entry, operations)
		default:
			r.unexpected()
		}
	}
	if entry != nil {
		entry.Header = header
	}
	return found, r.err
}

// walkGroup is walkEntry for one group of the entry that r reads.
func (r *reader) walkGroup(data []byte, found *counts, entry *Entry, operations *[][]byte) {
	if found.groups++; found.groups > MaxGroups {
		r.fail("more than %d groups", MaxGroups)
	}
	if r.err != nil {
		return
	}
	group, err := walkGroup(data, &found.operations, operations)
	if err != nil {
		r.err = err
	} else if entry != nil {
		entry.Groups = append(entry.Groups, group)
	}
}

// DecodeGroup decodes a group. The result's byte slices are views into data.
// Its error wraps ErrCorrupt.
func DecodeGroup(data []byte) (Group, error) {
	n, err := CheckGroup(data)
	if err != nil {
		return Group{}, err
	}
	total, operations := 0, make([][]byte, 0, n)
	return walkGroup(data, &total, &operations)
}

// CheckGroup reports whether data is an encoded Group, and how many operations it holds,
// without allocating. A leader calls it on every group that came from elsewhere: a
// damaged group within an entry would stop every node.
func CheckGroup(data []byte) (operations int, err error) {
	if len(data) > MaxEntryBytes {
		return 0, corrupt("group of %d bytes, at most %d", len(data), MaxEntryBytes)
	}
	_, err = walkGroup(data, &operations, nil)
	return operations, err
}

// walkGroup decodes a group, adding the number of its operations to total. It
// stores them if operations is set.
func walkGroup(data []byte, total *int, operations *[][]byte) (Group, error) {
	var g Group
	first := 0
	if operations != nil {
		first = len(*operations)
	}
	r := reader{rest: data}
	for r.more() {
		switch r.next() {
		case groupOrigin:
			g.Origin = r.bytes(MaxOriginBytes)
		case groupSession:
			g.Session = r.varint()
		case groupSequence:
			g.Sequence = r.varint()
		case groupAcknowledged:
			g.Acknowledged = r.varint()
		case groupOperations:
			op := r.repeated()
			if *total++; *total > MaxOperations {
				r.fail("more than %d operations", MaxOperations)
			} else if operations != nil {
				*operations = append(*operations, op)
			}
		default:
			r.unexpected()
		}
	}
	if operations != nil {
		end := len(*operations)
		g.Operations = (*operations)[first:end:end]
	}
	return g, r.err
}

// reader reads the fields of one message in the only form in which they are
// written: in ascending order, scalars once and not zero, numbers as short as
// they can be. So there is one encoding of each message, and no room to hide
// anything in one.
type reader struct {
	rest []byte
	num  protowire.Number // of the field read last
	typ  protowire.Type
	prev protowire.Number // of the field before it
	err  error
}

// more reports whether there is another field to read.
func (r *reader) more() bool { return r.err == nil && len(r.rest) > 0 }

// next reads the number and type of the next field; 0 on an error.
func (r *reader) next() protowire.Number {
	tag := r.rawVarint()
	num, typ := protowire.DecodeTag(tag)
	if r.err != nil {
		return 0
	}
	if num < 1 || tag > math.MaxUint32 || num < r.num {
		r.fail("field %d out of order", num)
		return 0
	}
	r.prev, r.num, r.typ = r.num, num, typ
	return num
}

// varint reads the value of a scalar field, which is never zero.
func (r *reader) varint() uint64 {
	r.once(protowire.VarintType)
	v := r.rawVarint()
	if v == 0 {
		r.fail("field %d is zero", r.num)
	}
	return v
}

// uint32 reads the value of a scalar field of 32 bits.
func (r *reader) uint32() uint32 {
	v := r.varint()
	if v > math.MaxUint32 {
		r.fail("field %d has %d", r.num, v)
	}
	return uint32(v)
}

// bytes reads the value of a bytes field, which is never empty.
func (r *reader) bytes(most int) []byte {
	r.once(protowire.BytesType)
	v := r.rawBytes()
	if len(v) == 0 || len(v) > most {
		r.fail("field %d has %d bytes", r.num, len(v))
	}
	return v
}

// repeated reads one value of a repeated field.
func (r *reader) repeated() []byte {
	if r.typ != protowire.BytesType {
		r.unexpected()
	}
	return r.rawBytes()
}

// once fails unless the field has this type and did not come before.
func (r *reader) once(typ protowire.Type) {
	if r.typ != typ || r.prev == r.num {
		r.unexpected()
	}
}

// unexpected fails with the field read last.
func (r *reader) unexpected() { r.fail("unexpected field %d of type %d", r.num, r.typ) }

func (r *reader) rawVarint() uint64 {
	v, n := protowire.ConsumeVarint(r.rest)
	if n < 0 || n != protowire.SizeVarint(v) {
		r.fail("bad number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) rawBytes() []byte {
	n := r.rawVarint()
	if r.err != nil || n > uint64(len(r.rest)) {
		r.fail("cut short")
		return nil
	}
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

// fail keeps the first error and ends the reading.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = corrupt(format, args...)
	}
	r.rest = nil
}
