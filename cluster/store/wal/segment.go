package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
)

const (
	segmentMagic = "idnwal\x00\x01"
	// headerBytes is a segment's header: magic, number, size in bytes, first and
	// last index (8 each), sum of the record before it, CRC-32C (4 each).
	headerBytes = 8 + 8 + 8 + 8 + 8 + 4 + 4
	// nameFormat makes the names of segments sort as their numbers do.
	nameFormat  = "%020d.log"
	draftSuffix = ".new"
	// fillBytes is how many zeros are written at once.
	fillBytes = 1 << 20
)

// segment is one open file of records.
type segment struct {
	number uint64
	file   File
	bytes  int64
}

func (s *segment) name() string { return fmt.Sprintf(nameFormat, s.number) }

// header is the beginning of a segment: how the log stood when it began.
type header struct {
	number uint64
	bytes  int64
	span
	chain uint32
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerBytes), segmentMagic...)
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, uint64(h.bytes))
	b = binary.BigEndian.AppendUint64(b, h.first)
	b = binary.BigEndian.AppendUint64(b, h.last)
	b = binary.BigEndian.AppendUint32(b, h.chain)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerBytes || string(b[:8]) != segmentMagic ||
		crc32.Checksum(b[:headerBytes-4], castagnoli) != binary.BigEndian.Uint32(b[headerBytes-4:]) {
		return header{}, ErrCorrupt
	}
	return header{
		number: binary.BigEndian.Uint64(b[8:]),
		bytes:  int64(binary.BigEndian.Uint64(b[16:])),
		span:   span{first: binary.BigEndian.Uint64(b[24:]), last: binary.BigEndian.Uint64(b[32:])},
		chain:  binary.BigEndian.Uint32(b[40:]),
	}, nil
}

// createSegment makes a segment full of zeros behind its header. It appears
// under its name only when it is whole and on disk.
func createSegment(d Disk, h header) (*segment, error) {
	s := &segment{number: h.number, bytes: h.bytes}
	draft := s.name() + draftSuffix
	var err error
	if s.file, err = d.Create(draft); err != nil {
		return nil, err
	}
	err = s.fill(h)
	if err == nil {
		err = d.Rename(draft, s.name())
	}
	if err == nil {
		err = d.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

func (s *segment) fill(h header) error {
	content := make([]byte, min(s.bytes, fillBytes))
	copy(content, h.encode())
	for at := int64(0); at < s.bytes; at += int64(len(content)) {
		content = content[:min(int64(len(content)), s.bytes-at)]
		if _, err := s.file.WriteAt(content, at); err != nil {
			return err
		}
		if at == 0 {
			clear(content[:headerBytes])
		}
	}
	return s.file.Sync()
}

// openSegment opens a segment and reads all of it.
func openSegment(d Disk, number uint64) (*segment, header, []byte, error) {
	s := &segment{number: number}
	var err error
	if s.file, err = d.Open(s.name()); err != nil {
		return nil, header{}, nil, missing(s.name(), err)
	}
	h, content, err := s.read()
	if err != nil {
		return nil, header{}, nil, errors.Join(err, s.file.Close())
	}
	s.bytes = h.bytes
	return s, h, content, nil
}

func (s *segment) read() (header, []byte, error) {
	size, err := s.file.Size()
	if err != nil {
		return header{}, nil, err
	}
	content := make([]byte, size)
	if _, err := s.file.ReadAt(content, 0); err != nil && size > 0 {
		return header{}, nil, fmt.Errorf("%w: reading %s: %w", ErrCorrupt, s.name(), err)
	}
	h, err := decodeHeader(content)
	if err != nil || h.number != s.number || h.bytes != size {
		return header{}, nil, fmt.Errorf("%w: header or size of %s", ErrCorrupt, s.name())
	}
	return h, content, nil
}

// missing says that a file that is not there is damage.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrCorrupt, name)
	}
	return err
}

// segmentNumbers lists the segments, and removes what a crash left of one that
// was never finished.
func segmentNumbers(d Disk) ([]uint64, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if strings.HasSuffix(name, draftSuffix) {
			if err := d.Remove(name); err != nil {
				return nil, err
			}
			continue
		}
		var number uint64
		if _, err := fmt.Sscanf(name, nameFormat, &number); err == nil && name == fmt.Sprintf(nameFormat, number) {
			numbers = append(numbers, number)
		} else if name != markName {
			return nil, fmt.Errorf("%w: %q does not belong into the log's folder", ErrCorrupt, name)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
