package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/crc32c"
)

// ErrCorrupt means that data on disk is not what was written.
var ErrCorrupt = errors.New("stored data is damaged")

// A record is, big endian: the magic, the length of all entries in bytes (4),
// how many they are (4), the first and the last index of the log after it (8
// each), the sum of the record before it (4), a CRC-32C (4); then the entries.
const (
	recordMagic       = "idnR"
	recordHeaderBytes = 4 + 4 + 4 + 8 + 8 + 4 + 4
	recordSumAt       = recordHeaderBytes - 4
)

// An entry is, big endian: index, term (8 each), type (1), the instant it was
// appended as seconds (8) and nanoseconds (4), the lengths of data and extensions
// (4 each), data, extensions, and a CRC-32C of all that (4).
const (
	entryHeaderBytes = 8 + 8 + 1 + 8 + 4 + 4 + 4
	entryMinBytes    = entryHeaderBytes + 4
)

// indexRange is the first and the last index of a log. An empty log is 1 to 0.
type indexRange struct{ first, last uint64 }

// recordPos is a record's position. It is part of the record's sum, so that a record is valid
// at its own position only.
type recordPos struct {
	segment uint64
	offset  int64
}

type record struct {
	indexRange
	// previous is the sum of the record before it, sum its own.
	previous, sum uint32
	// entries are the positions of its entries in the segment, in order of their index;
	// the last one's is indexRange.last.
	entries []extent
	// end is the offset behind the record.
	end int64
}

type extent struct {
	offset int64
	bytes  int32
}

// base is the index before the record's first entry.
func (r *record) base() uint64 { return r.last - uint64(len(r.entries)) }

func recordBytes(logs []*raft.Log) int64 {
	n := int64(recordHeaderBytes)
	for _, log := range logs {
		n += int64(entryMinBytes + len(log.Data) + len(log.Extensions))
	}
	return n
}

// appendRecord appends to buf, which is empty, a record for the given position, and
// returns what decodeRecord will find.
func appendRecord(buf []byte, at recordPos, after indexRange, previous uint32, logs []*raft.Log) ([]byte, record, error) {
	rec := record{indexRange: after, previous: previous, entries: make([]extent, 0, len(logs))}
	buf = append(buf, make([]byte, recordHeaderBytes)...)
	for _, log := range logs {
		start := len(buf)
		buf = appendEntry(buf, log)
		rec.entries = append(rec.entries, extent{at.offset + int64(start), int32(len(buf) - start)})
	}
	if len(buf) > math.MaxInt32 {
		return buf, record{}, fmt.Errorf("wal: %d bytes are too many for one append", len(buf))
	}
	header := append(buf[:0], recordMagic...)
	header = binary.BigEndian.AppendUint32(header, uint32(len(buf)-recordHeaderBytes))
	header = binary.BigEndian.AppendUint32(header, uint32(len(logs)))
	header = binary.BigEndian.AppendUint64(header, after.first)
	header = binary.BigEndian.AppendUint64(header, after.last)
	binary.BigEndian.AppendUint32(header, previous)
	rec.sum = recordSum(at, buf)
	binary.BigEndian.PutUint32(buf[recordSumAt:], rec.sum)
	rec.end = at.offset + int64(len(buf))
	return buf, rec, nil
}

// recordSum is the CRC-32C of a record's position and all of it but the sum itself.
func recordSum(at recordPos, raw []byte) uint32 {
	var where [16]byte
	binary.BigEndian.PutUint64(where[:], at.segment)
	binary.BigEndian.PutUint64(where[8:], uint64(at.offset))
	return crc32c.Sum(where[:], raw[:recordSumAt], raw[recordHeaderBytes:])
}

// decodeRecord decodes the record at the given place of a segment's content. The error is
// ErrCorrupt; so it is for a record with a right sum and invalid content.
func decodeRecord(content []byte, at recordPos) (record, error) {
	bad := fmt.Errorf("%w: record at %d of segment %d", ErrCorrupt, at.offset, at.segment)
	raw := content[at.offset:]
	if len(raw) < recordHeaderBytes || string(raw[:len(recordMagic)]) != recordMagic {
		return record{}, bad
	}
	length, count := uint64(binary.BigEndian.Uint32(raw[4:])), uint64(binary.BigEndian.Uint32(raw[8:]))
	if length > uint64(len(raw)-recordHeaderBytes) || count*entryMinBytes > length {
		return record{}, bad
	}
	raw = raw[:recordHeaderBytes+length]
	rec := record{
		indexRange: indexRange{first: binary.BigEndian.Uint64(raw[12:]), last: binary.BigEndian.Uint64(raw[20:])},
		previous:   binary.BigEndian.Uint32(raw[28:]),
		sum:        binary.BigEndian.Uint32(raw[recordSumAt:]),
		end:        at.offset + int64(len(raw)),
	}
	if rec.sum != recordSum(at, raw) || rec.last < count || rec.first > rec.last-count+1 {
		return record{}, bad
	}
	rec.entries = make([]extent, 0, count)
	for rest, index := raw[recordHeaderBytes:], rec.last-count+1; len(rest) > 0; index++ {
		size, err := entrySize(rest)
		if err != nil || decodeEntry(rest[:size], index, new(raft.Log)) != nil {
			return record{}, bad
		}
		rec.entries = append(rec.entries, extent{rec.end - int64(len(rest)), int32(size)})
		rest = rest[size:]
	}
	if uint64(len(rec.entries)) != count {
		return record{}, bad
	}
	return rec, nil
}

// hasRecord reports whether a good record begins anywhere from the offset on.
func hasRecord(content []byte, segment uint64, offset int64) bool {
	for {
		i := bytes.Index(content[offset:], []byte(recordMagic))
		if i < 0 {
			return false
		}
		offset += int64(i)
		if _, err := decodeRecord(content, recordPos{segment, offset}); err == nil {
			return true
		}
		offset++
	}
}

func appendEntry(buf []byte, log *raft.Log) []byte {
	start := len(buf)
	buf = binary.BigEndian.AppendUint64(buf, log.Index)
	buf = binary.BigEndian.AppendUint64(buf, log.Term)
	buf = append(buf, byte(log.Type))
	buf = binary.BigEndian.AppendUint64(buf, uint64(log.AppendedAt.Unix()))
	buf = binary.BigEndian.AppendUint32(buf, uint32(log.AppendedAt.Nanosecond()))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(log.Data)))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(log.Extensions)))
	buf = append(append(buf, log.Data...), log.Extensions...)
	return binary.BigEndian.AppendUint32(buf, crc32c.Sum(buf[start:]))
}

func entrySize(raw []byte) (int, error) {
	if len(raw) < entryMinBytes {
		return 0, ErrCorrupt
	}
	size := entryMinBytes + uint64(binary.BigEndian.Uint32(raw[29:])) + uint64(binary.BigEndian.Uint32(raw[33:]))
	if size > uint64(len(raw)) {
		return 0, ErrCorrupt
	}
	return int(size), nil
}

// decodeEntry decodes the entry that raw consists of, and checks that it has the given
// index. Data and extensions stay in raw; empty is nil.
func decodeEntry(raw []byte, index uint64, log *raft.Log) error {
	size, err := entrySize(raw)
	body := len(raw) - 4
	if err != nil || size != len(raw) ||
		binary.BigEndian.Uint32(raw[body:]) != crc32c.Sum(raw[:body]) ||
		binary.BigEndian.Uint64(raw) != index {
		return fmt.Errorf("%w: log entry %d", ErrCorrupt, index)
	}
	*log = raft.Log{
		Index: index,
		Term:  binary.BigEndian.Uint64(raw[8:]),
		Type:  raft.LogType(raw[16]),
		AppendedAt: time.Unix(int64(binary.BigEndian.Uint64(raw[17:])),
			int64(binary.BigEndian.Uint32(raw[25:]))).UTC(),
	}
	middle := entryHeaderBytes + int(binary.BigEndian.Uint32(raw[29:]))
	if middle > entryHeaderBytes {
		log.Data = raw[entryHeaderBytes:middle:middle]
	}
	if body > middle {
		log.Extensions = raw[middle:body:body]
	}
	return nil
}
