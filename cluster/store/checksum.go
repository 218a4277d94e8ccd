package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// checksumBytes is the length of a checksum, a CRC-32C, big endian.
const checksumBytes = 4

// Castagnoli is the polynomial that CPUs compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// valueWithChecksum returns the value of a stable key with its checksum.
func valueWithChecksum(key, value []byte) []byte {
	stored := append(make([]byte, 0, len(value)+checksumBytes), value...)
	return binary.BigEndian.AppendUint32(stored, valueSum(key, value))
}

// stripValueChecksum checks and removes the checksum of a stable value.
func stripValueChecksum(key, stored []byte) ([]byte, error) {
	n := len(stored) - checksumBytes
	if n < 0 || valueSum(key, stored[:n]) != binary.BigEndian.Uint32(stored[n:]) {
		return nil, fmt.Errorf("%w: checksum of stable value %q", ErrCorrupt, key)
	}
	return stored[:n:n], nil
}

func valueSum(key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, binary.BigEndian.AppendUint64(nil, uint64(len(key))))
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}
