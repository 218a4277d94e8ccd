package generator

import "strconv"

// Number is a number of a range, as one value. It is immutable and comparable: two Numbers
// are equal if they are the same number of the same range.
type Number struct {
	value int64
	of    *heldRange
}

// Value returns the number, 1 or more. No other caller gets the same number of the tag.
func (n Number) Value() int64 { return n.value }

// Prefix returns the part of the id before the number, such as "users/".
func (n Number) Prefix() string {
	if n.of == nil {
		return ""
	}
	return n.of.Prefix
}

// NodeTag returns the tag of the node that reserved the range. It is empty if that node has
// a server prefix, which is then part of the Prefix.
func (n Number) NodeTag() string {
	if n.of == nil {
		return ""
	}
	return n.of.NodeTag
}

// String returns the number's id, "users/65-A", or "users/North/65" if there is no node tag.
// It allocates only the string. The zero Number has no id.
func (n Number) String() string {
	if n.of == nil {
		return ""
	}
	// The digits stay on the stack: a conversion within a concatenation copies nothing.
	var digits [20]byte
	return n.of.Prefix + string(strconv.AppendInt(digits[:0], n.value, 10)) + n.of.suffix
}

// Append appends the number's id to dst and returns the extended slice. It does not
// allocate if dst has enough capacity.
func (n Number) Append(dst []byte) []byte {
	if n.of == nil {
		return dst
	}
	dst = append(dst, n.of.Prefix...)
	dst = strconv.AppendInt(dst, n.value, 10)
	return append(dst, n.of.suffix...)
}
