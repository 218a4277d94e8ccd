package wire

import "google.golang.org/protobuf/encoding/protowire"

// Number is the number of a field.
type Number = protowire.Number

// AppendVarint appends a number; as in proto3, zero is not written.
func AppendVarint(dst []byte, num Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return AppendPresent(dst, num, v)
}

// AppendPresent appends a number with presence, which is written also if it is zero.
func AppendPresent(dst []byte, num Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// AppendFixed64 appends a number of eight bytes; zero is not written.
func AppendFixed64(dst []byte, num Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), v)
}

// AppendBytes appends text or bytes; as in proto3, none are not written.
func AppendBytes[T string | []byte](dst []byte, num Number, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	return append(AppendLength(dst, num, len(v)), v...)
}

// AppendRepeated appends a repeated field, of which empty elements are written.
func AppendRepeated(dst []byte, num Number, vs [][]byte) []byte {
	tag := protowire.EncodeTag(num, protowire.BytesType)
	for _, v := range vs {
		dst = protowire.AppendBytes(protowire.AppendVarint(dst, tag), v)
	}
	return dst
}

// AppendLength appends what comes before the value of text, of bytes or of a message: the
// field's tag, and how many bytes follow.
func AppendLength(dst []byte, num Number, length int) []byte {
	tag := protowire.EncodeTag(num, protowire.BytesType)
	if tag < 0x80 && length < 0x80 { // Most have one byte each.
		return append(dst, byte(tag), byte(length))
	}
	return protowire.AppendVarint(protowire.AppendVarint(dst, tag), uint64(length))
}

// SizeVarint is how many bytes AppendVarint appends, and so for the other sizes.
func SizeVarint(num Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeVarint(v)
}

// SizeBytes is how many bytes AppendBytes appends.
func SizeBytes[T string | []byte](num Number, v T) int {
	if len(v) == 0 {
		return 0
	}
	return SizeLength(num, len(v)) + len(v)
}

// SizeRepeated is how many bytes AppendRepeated appends.
func SizeRepeated(num Number, vs [][]byte) (size int) {
	for _, v := range vs {
		size += SizeLength(num, len(v)) + len(v)
	}
	return size
}

// SizeLength is how many bytes AppendLength appends.
func SizeLength(num Number, length int) int {
	return protowire.SizeTag(num) + protowire.SizeVarint(uint64(length))
}
