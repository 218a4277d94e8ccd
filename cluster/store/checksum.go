package store

import (
	"encoding/binary"
	"fmt"

	"github.com/idnode/idnode/internal/crc32c"
)

// checksumBytes is the length of a checksum, a CRC-32C, big endian.
const checksumBytes = 4

func valueWithChecksum(key, value []byte) []byte {
	stored := append(make([]byte, 0, len(value)+checksumBytes), value...)
	return binary.BigEndian.AppendUint32(stored, valueSum(key, value))
}

func stripValueChecksum(key, stored []byte) ([]byte, error) {
	n := len(stored) - checksumBytes
	if n < 0 || valueSum(key, stored[:n]) != binary.BigEndian.Uint32(stored[n:]) {
		return nil, fmt.Errorf("%w: checksum of stable value %q", ErrCorrupt, key)
	}
	return stored[:n:n], nil
}

func valueSum(key, value []byte) uint32 {
	return crc32c.Sum(binary.BigEndian.AppendUint64(nil, uint64(len(key))), key, value)
}
