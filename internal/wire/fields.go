package wire

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Value is the value of one field of a message.
type Value struct {
	Type   protowire.Type
	Varint uint64
	// Bytes is the value of text, bytes or a message: a view.
	Bytes []byte
}

// Fields returns the fields of a message as any protobuf library may have written them: in
// any order, any number of times, and of all types. Behind what it cannot read it ends, with
// a field of number 0.
func Fields(message []byte) iter.Seq2[Number, Value] {
	return func(yield func(Number, Value) bool) {
		for len(message) > 0 {
			num, v, n := first(message)
			if !yield(num, v) || n == 0 {
				return
			}
			message = message[n:]
		}
	}
}

// first returns the first field of a message, which has n bytes; all are 0 if it cannot be
// read.
func first(message []byte) (num Number, v Value, n int) {
	num, v.Type = protowire.DecodeTag(uint64(message[0]))
	n = 1
	if message[0] >= 0x80 || num < protowire.MinValidNumber { // Most tags have one byte.
		if num, v.Type, n = protowire.ConsumeTag(message); n < 0 {
			return 0, Value{}, 0
		}
	}
	size := 0
	switch value := message[n:]; v.Type {
	case protowire.VarintType:
		v.Varint, size = protowire.ConsumeVarint(value)
	case protowire.BytesType:
		v.Bytes, size = protowire.ConsumeBytes(value)
	default:
		size = protowire.ConsumeFieldValue(num, v.Type, value)
	}
	if size < 0 {
		return 0, Value{}, 0
	}
	return num, v, n + size
}
