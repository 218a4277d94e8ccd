package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Reader reads the fields of one message in the only form in which this package (or a
// protobuf library) writes them: in ascending order, scalars once and not zero, numbers as
// short as they can be. So there is one encoding of each message, and no room to hide
// anything in one. The first error ends the reading:
//
//	for r := wire.NewReader(message); r.More(); {
//		switch r.Next() {
//		case name:
//			v.Name = r.Text()
//		default:
//			r.Unexpected()
//		}
//	}
type Reader struct {
	data []byte
	at   int    // where what was not read begins
	num  Number // of the field read last
	typ  protowire.Type
	prev Number // of the field before it
	err  error
}

// NewReader returns a reader of the message. What it returns are views into the message.
func NewReader(message []byte) Reader { return Reader{data: message} }

// More reports whether there is another field to read. It is false after an error.
func (r *Reader) More() bool { return r.at < len(r.data) }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Next reads the number of the next field; 0 on an error.
func (r *Reader) Next() Number {
	tag := r.number()
	num := Number(tag >> 3)
	if num < max(1, r.num) || tag > math.MaxUint32 {
		r.Fail("field %d out of order", num)
		return 0
	}
	r.prev, r.num, r.typ = r.num, num, protowire.Type(tag&7)
	return num
}

// Varint reads a number, which is never zero.
func (r *Reader) Varint() uint64 {
	r.once(protowire.VarintType)
	v := r.number()
	if v == 0 {
		r.Fail("field %d is zero", r.num)
	}
	return v
}

// Uint32 reads a number of 32 bits.
func (r *Reader) Uint32() uint32 {
	v := r.Varint()
	if v > math.MaxUint32 {
		r.Fail("field %d has %d", r.num, v)
	}
	return uint32(v)
}

// Bool reads a truth value, which is written only if it is true.
func (r *Reader) Bool() bool {
	v := r.Varint()
	if v != 1 {
		r.Fail("field %d has %d", r.num, v)
	}
	return v == 1
}

// Fixed64 reads a number of eight bytes, which is never zero.
func (r *Reader) Fixed64() uint64 {
	r.once(protowire.Fixed64Type)
	v, n := protowire.ConsumeFixed64(r.data[r.at:])
	if n < 0 || v == 0 {
		r.Fail("field %d is zero or cut short", r.num)
		return 0
	}
	r.at += n
	return v
}

// Bytes reads bytes, of which there is at least one.
func (r *Reader) Bytes() []byte {
	v := r.Message()
	if len(v) == 0 {
		r.Fail("field %d is empty", r.num)
	}
	return v
}

// Text reads text, which is UTF-8 and not empty.
func (r *Reader) Text() string { return string(r.utf8(r.Bytes())) }

// RepeatedText reads one text of a repeated field.
func (r *Reader) RepeatedText() string { return string(r.utf8(r.Repeated())) }

// Message reads an encoded message, or bytes with presence: what may be empty.
func (r *Reader) Message() []byte {
	r.once(protowire.BytesType)
	return r.bytes()
}

// Repeated reads one value of a repeated field.
func (r *Reader) Repeated() []byte {
	if r.typ != protowire.BytesType {
		r.Unexpected()
	}
	return r.bytes()
}

// Unexpected fails with the field read last.
func (r *Reader) Unexpected() { r.Fail("unexpected field %d of type %d", r.num, r.typ) }

// Fail keeps the first error and ends the reading.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.at = len(r.data)
}

// once fails unless the field has this type and did not come before.
func (r *Reader) once(typ protowire.Type) {
	if r.typ != typ || r.prev == r.num {
		r.Fail("field %d of type %d or twice", r.num, r.typ)
	}
}

func (r *Reader) number() uint64 {
	if r.at < len(r.data) && r.data[r.at] < 0x80 { // Most have one byte.
		r.at++
		return uint64(r.data[r.at-1])
	}
	return r.longNumber()
}

func (r *Reader) longNumber() uint64 {
	v, n := protowire.ConsumeVarint(r.data[r.at:])
	if n < 0 || n != protowire.SizeVarint(v) {
		r.Fail("bad number")
		return 0
	}
	r.at += n
	return v
}

func (r *Reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.data)-r.at) {
		r.Fail("cut short")
		return nil
	}
	from := r.at
	r.at += int(n)
	return r.data[from:r.at:r.at]
}

func (r *Reader) utf8(text []byte) []byte {
	if !utf8.Valid(text) {
		r.Fail("field %d is not UTF-8", r.num)
	}
	return text
}

// ErrLength is ReadLength's error for bytes that are no length.
var ErrLength = errors.New("the length of a message is malformed")

// ReadLength reads the length that stands before a message in a file, written as short as it
// can be. Any other error than ErrLength is the reader's.
func ReadLength(r io.ByteReader) (uint64, error) {
	var space [binary.MaxVarintLen64]byte
	raw := space[:0]
	for len(raw) < cap(raw) {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if raw = append(raw, b); b < 0x80 {
			break
		}
	}
	size, n := protowire.ConsumeVarint(raw)
	if n < 0 || n != protowire.SizeVarint(size) {
		return 0, ErrLength
	}
	return size, nil
}
