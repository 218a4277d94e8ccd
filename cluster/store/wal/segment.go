package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/dirfile"
)

const (
	segmentMagic = "idnwal\x00\x01"
	// headerBytes is a segment's header: magic, number, size in bytes, first and
	// last index (8 each), sum of the record before it, CRC-32C (4 each).
	headerBytes = 8 + 8 + 8 + 8 + 8 + 4 + 4
	// nameFormat makes the names of segments sort as their numbers do.
	nameFormat  = "%020d.log"
	draftSuffix = ".new"
	fillBytes   = 1 << 20
)

// segment is one open file of records.
type segment struct {
	number uint64
	file   File
	bytes  int64
}

func (s *segment) name() string { return fmt.Sprintf(nameFormat, s.number) }

func (s *segment) draft() string { return s.name() + draftSuffix }

// header is the beginning of a segment: the log's position when it began.
type header struct {
	number uint64
	bytes  int64
	indexRange
	chain uint32
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerBytes), segmentMagic...)
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, uint64(h.bytes))
	b = binary.BigEndian.AppendUint64(b, h.first)
	b = binary.BigEndian.AppendUint64(b, h.last)
	b = binary.BigEndian.AppendUint32(b, h.chain)
	return binary.BigEndian.AppendUint32(b, crc32c.Sum(b))
}

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerBytes {
		return header{}, ErrCorrupt
	}
	intact := crc32c.Sum([]byte(segmentMagic), b[len(segmentMagic):headerBytes-4]) == binary.BigEndian.Uint32(b[headerBytes-4:])
	if err := dirfile.Magic(b, segmentMagic, intact, ErrCorrupt); err != nil {
		return header{}, err
	}
	return header{
		number:     binary.BigEndian.Uint64(b[8:]),
		bytes:      int64(binary.BigEndian.Uint64(b[16:])),
		indexRange: indexRange{first: binary.BigEndian.Uint64(b[24:]), last: binary.BigEndian.Uint64(b[32:])},
		chain:      binary.BigEndian.Uint32(b[40:]),
	}, nil
}

// prepareSegment makes the file of a future segment, of at least so many bytes: full of zeros
// and on disk, but named as a draft. A draft that was made before, whatever is in it, is used
// again, so that no file system runs out of inodes.
func prepareSegment(d Disk, number uint64, bytes int64) (*segment, error) {
	s := &segment{number: number, bytes: bytes}
	if err := s.openDraft(d); err != nil {
		return nil, err
	}
	if err := s.fill(); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	if err := d.Sync(); err != nil {
		// Its name looks durable, and no further sync would make it so.
		return nil, errors.Join(err, s.file.Close(), d.Remove(s.draft()))
	}
	return s, nil
}

func (s *segment) openDraft(d Disk) (err error) {
	s.file, err = d.Create(s.draft())
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.file, err = d.Open(s.draft()); err != nil {
		return err
	}
	size, err := s.file.Size()
	if err != nil {
		return errors.Join(err, s.file.Close())
	}
	s.bytes = max(s.bytes, size)
	return nil
}

func (s *segment) fill() error {
	zeros := make([]byte, min(s.bytes, fillBytes))
	for at := int64(0); at < s.bytes; at += int64(len(zeros)) {
		zeros = zeros[:min(int64(len(zeros)), s.bytes-at)]
		if _, err := s.file.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	return s.file.Sync()
}

// begin makes a prepared segment part of the log, with its first record, if any.
//
// Invariant: a segment with its own name has its header on disk. The name itself
// need not be on disk yet: a draft that continues the log is part of it.
func (s *segment) begin(d Disk, h header, first []byte) error {
	if _, err := s.file.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(first, headerBytes); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	return d.Rename(s.draft(), s.name())
}

// openSegment opens a segment under its current name, and reads all of it.
func openSegment(d Disk, number uint64, name string) (*segment, header, []byte, error) {
	s := &segment{number: number}
	var err error
	if s.file, err = d.Open(name); err != nil {
		return nil, header{}, nil, missing(name, err)
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
	// The header alone reports whether a draft was begun: nothing else of it is read
	// then.
	first := content[:min(size, headerBytes)]
	if _, err := s.file.ReadAt(first, 0); err != nil && size > 0 {
		return header{}, nil, unread(s.name(), err)
	}
	h, err := decodeHeader(first)
	if errors.Is(err, dirfile.ErrOtherVersion) {
		return header{}, nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	if err != nil || h.number != s.number || h.bytes != size {
		return header{}, nil, fmt.Errorf("%w: header or size of %s", ErrCorrupt, s.name())
	}
	if _, err := s.file.ReadAt(content, 0); err != nil {
		return header{}, nil, unread(s.name(), err)
	}
	return h, content, nil
}

// unread reports a file that ends too early as damaged. Any other error is the system's:
// the content was not seen.
func unread(what string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return fmt.Errorf("reading %s: %w", what, err)
}

func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrCorrupt, name)
	}
	return err
}

type listing struct {
	numbers []uint64
	// drafts are the names of prepared or unfinished segments.
	drafts []string
}

func list(d Disk) (found listing, err error) {
	names, err := d.Names()
	if err != nil {
		return found, err
	}
	for _, name := range names {
		var number uint64
		if strings.HasSuffix(name, draftSuffix) {
			found.drafts = append(found.drafts, name)
		} else if _, err := fmt.Sscanf(name, nameFormat, &number); err == nil && name == fmt.Sprintf(nameFormat, number) {
			found.numbers = append(found.numbers, number)
		} else if name != markName && !strings.HasPrefix(name, ".") {
			return found, fmt.Errorf("%w: %q does not belong into the log's folder", ErrCorrupt, name)
		}
	}
	slices.Sort(found.numbers)
	return found, nil
}

// run splits the segments into the newest consecutive ones, and those below a gap. Many
// are removed with one sync, so a loss of power may keep any of them.
func (f listing) run() (below, run []uint64) {
	from := len(f.numbers) - 1
	for from > 0 && f.numbers[from-1]+1 == f.numbers[from] {
		from--
	}
	return f.numbers[:max(from, 0)], f.numbers[max(from, 0):]
}
