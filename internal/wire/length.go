package wire

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

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
