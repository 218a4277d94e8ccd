package op

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The fields of proto3 without presence: zero and the empty text are not written.

func appendNumber(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendFixed64(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), v)
}

func appendText(dst []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), s)
}

// sizeNumber is the size of what appendNumber appends, for a tag of one byte.
func sizeNumber(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

// sizeText is the size of what appendText appends, for a tag of one byte.
func sizeText(s string) int {
	if s == "" {
		return 0
	}
	return 1 + protowire.SizeBytes(len(s))
}

// fieldsByType returns the numbers of those fields that hold a message, by its type.
func fieldsByType(of proto.Message) map[protoreflect.FullName]protowire.Number {
	numbers, fields := map[protoreflect.FullName]protowire.Number{}, of.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if m := fields.Get(i).Message(); m != nil {
			numbers[m.FullName()] = fields.Get(i).Number()
		}
	}
	return numbers
}

// appendMessage appends a message as the field for its type. It is deterministic, because
// results are part of the state. The error is that of text that is not UTF-8.
func appendMessage(dst []byte, fields map[protoreflect.FullName]protowire.Number, m proto.Message) ([]byte, error) {
	num, ok := fields[m.ProtoReflect().Descriptor().FullName()]
	if !ok {
		panic("op: no field holds a " + m.ProtoReflect().Descriptor().FullName())
	}
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(proto.Size(m)))
	return proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(dst, m)
}

// field is the value of one field: number or bytes, by its type.
type field struct {
	typ    protowire.Type
	number uint64
	bytes  []byte
}

// eachField calls accept for each field of an encoded message until it returns
// false, which makes the message malformed.
func eachField(data []byte, accept func(protowire.Number, field) bool) error {
	for len(data) > 0 {
		num, typ, number, bytes, n := consumeField(data)
		if n < 0 || !accept(num, field{typ: typ, number: number, bytes: bytes}) {
			return ErrMalformed
		}
		data = data[n:]
	}
	return nil
}

// consumeField decodes the first field of a message, which has n bytes; n is negative if
// that is malformed. It returns no field: that does not fit into registers.
func consumeField(data []byte) (num protowire.Number, typ protowire.Type, number uint64, bytes []byte, n int) {
	num, typ = protowire.DecodeTag(uint64(data[0]))
	n = 1
	if data[0] >= 0x80 || num < protowire.MinValidNumber { // Most tags have one byte.
		if num, typ, n = protowire.ConsumeTag(data); n < 0 {
			return 0, 0, 0, nil, n
		}
	}
	m := -1
	switch typ {
	case protowire.VarintType:
		number, m = protowire.ConsumeVarint(data[n:])
	case protowire.Fixed64Type:
		number, m = protowire.ConsumeFixed64(data[n:])
	case protowire.BytesType:
		bytes, m = protowire.ConsumeBytes(data[n:])
	}
	if m < 0 {
		return 0, 0, 0, nil, m
	}
	return num, typ, number, bytes, n + m
}
