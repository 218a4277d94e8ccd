package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// checksumVersion stands in every checksum, so that a later version can compute it otherwise.
const checksumVersion = 1

// checksumBytes is the length of a checksum: the version and a CRC-32C, big endian.
const checksumBytes = 1 + 4

// Castagnoli is the polynomial that CPUs compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withChecksum returns a copy of the entry with a checksum at the end of its extensions.
// The entry itself is not changed: the library goes on using it. Data is shared.
//
// AppendedAt is stored in UTC: the checksum covers the instant, and a time zone
// would be the one thing in the entry that it does not cover.
func withChecksum(log *raft.Log) *raft.Log {
	stored := *log
	stored.AppendedAt = log.AppendedAt.UTC()
	ext := make([]byte, 0, len(log.Extensions)+checksumBytes)
	ext = append(append(ext, log.Extensions...), checksumVersion)
	stored.Extensions = binary.BigEndian.AppendUint32(ext, logSum(log, log.Extensions))
	return &stored
}

// stripChecksum checks and removes the checksum of an entry read at the given index. An
// entry with another index than its key's is damaged too.
func stripChecksum(index uint64, log *raft.Log) error {
	ext, sum, err := splitChecksum(log.Extensions)
	if err != nil {
		return fmt.Errorf("%w (log entry %d)", err, index)
	}
	log.AppendedAt = log.AppendedAt.UTC()
	if log.Index != index || logSum(log, ext) != sum {
		return fmt.Errorf("%w: checksum of log entry %d", ErrCorrupt, index)
	}
	log.Extensions = ext
	return nil
}

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

// logSum is the CRC-32C over every field of the entry. Lengths are part of it,
// so that bytes cannot move from one field to the next.
func logSum(log *raft.Log, ext []byte) uint32 {
	header := make([]byte, 0, 8*5+4+2)
	header = append(header, checksumVersion, byte(log.Type))
	header = binary.BigEndian.AppendUint64(header, log.Index)
	header = binary.BigEndian.AppendUint64(header, log.Term)
	header = binary.BigEndian.AppendUint64(header, uint64(log.AppendedAt.Unix()))
	header = binary.BigEndian.AppendUint32(header, uint32(log.AppendedAt.Nanosecond()))
	header = binary.BigEndian.AppendUint64(header, uint64(len(log.Data)))
	header = binary.BigEndian.AppendUint64(header, uint64(len(ext)))
	sum := crc32.Update(0, castagnoli, header)
	sum = crc32.Update(sum, castagnoli, log.Data)
	return crc32.Update(sum, castagnoli, ext)
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
