package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// sealVersion stands in every seal, so that a later version can seal otherwise.
const sealVersion = 1

// sealBytes is the length of a seal: the version and a CRC-32C, big endian.
const sealBytes = 1 + 4

// Castagnoli is the polynomial that CPUs compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealLog returns a copy of the entry with a seal at the end of its extensions.
// The entry itself is not changed: the library goes on using it. Data is shared.
//
// AppendedAt is stored in UTC: the checksum covers the instant, and a time zone
// would be the one thing in the entry that it does not cover.
func sealLog(log *raft.Log) *raft.Log {
	sealed := *log
	sealed.AppendedAt = log.AppendedAt.UTC()
	ext := make([]byte, 0, len(log.Extensions)+sealBytes)
	ext = append(append(ext, log.Extensions...), sealVersion)
	sealed.Extensions = binary.BigEndian.AppendUint32(ext, logSum(log, log.Extensions))
	return &sealed
}

// openLog checks and removes the seal of an entry read at the given index. An
// entry with another index than its key's is damaged too.
func openLog(index uint64, log *raft.Log) error {
	ext, sum, err := splitSeal(log.Extensions)
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

// splitSeal parts what was sealed from its checksum. Nothing sealed is nil.
func splitSeal(b []byte) (sealed []byte, sum uint32, err error) {
	n := len(b) - sealBytes
	if n < 0 || b[n] != sealVersion {
		return nil, 0, fmt.Errorf("%w: no seal", ErrCorrupt)
	}
	if n > 0 {
		sealed = b[:n:n]
	}
	return sealed, binary.BigEndian.Uint32(b[n+1:]), nil
}

// logSum is the CRC-32C over every field of the entry. Lengths are part of it,
// so that bytes cannot move from one field to the next.
func logSum(log *raft.Log, ext []byte) uint32 {
	header := make([]byte, 0, 8*5+4+2)
	header = append(header, sealVersion, byte(log.Type))
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

// sealValue returns the value of a stable key with its seal.
func sealValue(key, value []byte) []byte {
	sealed := make([]byte, 0, len(value)+sealBytes)
	sealed = append(append(sealed, value...), sealVersion)
	return binary.BigEndian.AppendUint32(sealed, valueSum(key, value))
}

// openValue checks and removes the seal of a stable value.
func openValue(key, sealed []byte) ([]byte, error) {
	value, sum, err := splitSeal(sealed)
	if err != nil {
		return nil, fmt.Errorf("%w (stable value %q)", err, key)
	}
	if valueSum(key, value) != sum {
		return nil, fmt.Errorf("%w: checksum of stable value %q", ErrCorrupt, key)
	}
	return value, nil
}

func valueSum(key, value []byte) uint32 {
	header := binary.BigEndian.AppendUint64([]byte{sealVersion}, uint64(len(key)))
	sum := crc32.Update(0, castagnoli, header)
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}
