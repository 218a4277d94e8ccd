package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// checksumVersion stands in every checksum, so that a later version can compute it otherwise.
const checksumVersion = 1

// checksumBytes is the length of a checksum: the version and a CRC-32C, big endian.
const checksumBytes = 1 + 4

// Castagnoli is the polynomial that CPUs compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// splitChecksum parts a value from its checksum. An empty value is nil.
func splitChecksum(b []byte) (value []byte, sum uint32, err error) {
	n := len(b) - checksumBytes
	if n < 0 || b[n] != checksumVersion {
		return nil, 0, fmt.Errorf("%w: no checksum", ErrCorrupt)
	}
	if n > 0 {
		value = b[:n:n]
	}
	return value, binary.BigEndian.Uint32(b[n+1:]), nil
}

// valueWithChecksum returns the value of a stable key with its checksum.
func valueWithChecksum(key, value []byte) []byte {
	stored := make([]byte, 0, len(value)+checksumBytes)
	stored = append(append(stored, value...), checksumVersion)
	return binary.BigEndian.AppendUint32(stored, valueSum(key, value))
}

// stripValueChecksum checks and removes the checksum of a stable value.
func stripValueChecksum(key, stored []byte) ([]byte, error) {
	value, sum, err := splitChecksum(stored)
	if err != nil {
		return nil, fmt.Errorf("%w (stable value %q)", err, key)
	}
	if valueSum(key, value) != sum {
		return nil, fmt.Errorf("%w: checksum of stable value %q", ErrCorrupt, key)
	}
	return value, nil
}

func valueSum(key, value []byte) uint32 {
	header := binary.BigEndian.AppendUint64([]byte{checksumVersion}, uint64(len(key)))
	sum := crc32.Update(0, castagnoli, header)
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}
