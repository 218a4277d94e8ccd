package wal

import (
	"bytes"
	"cmp"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Create makes an empty log in cfg.Dir, which must not exist and appears only
// when it is whole and on disk.
func Create(cfg Config) error {
	if cfg.Disk != nil {
		return cfg.Write("creating the log", func() error { return layOutAnew(cfg.Disk, cfg.SegmentBytes) })
	}
	draft := folder{cfg.Dir + draftSuffix, cfg.NoSync}
	return cfg.Write("creating the log", func() error {
		if err := os.RemoveAll(draft.path); err != nil {
			return err
		}
		if err := os.Mkdir(draft.path, dirMode); err != nil {
			return err
		}
		if err := layOut(draft, cfg.SegmentBytes); err != nil {
			return err
		}
		if err := os.Rename(draft.path, cfg.Dir); err != nil {
			return err
		}
		return folder{filepath.Dir(cfg.Dir), cfg.NoSync}.Sync()
	})
}

// layOutAnew makes the files of an empty log where a crash may have left some.
func layOutAnew(d Disk, segmentBytes int64) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.Remove(name); err != nil {
			return err
		}
	}
	return layOut(d, segmentBytes)
}

// layOut makes the files of an empty log. The chain begins at random, so that
// what another log has written is never taken for a record of this one.
func layOut(d Disk, segmentBytes int64) error {
	var seed [4]byte
	_, _ = crand.Read(seed[:]) // never fails
	h := header{number: 1, bytes: cmp.Or(segmentBytes, DefaultSegmentBytes), span: span{first: 1}}
	h.chain = binary.BigEndian.Uint32(seed[:])
	s, err := createSegment(d, h)
	if err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	if err := createMarker(d, mark{segment: h.number, end: headerBytes, chain: h.chain}); err != nil {
		return err
	}
	return d.Sync()
}

// Open opens the log in cfg.Dir, reads and checks all of it, and cuts off a torn
// write. It returns ErrCorrupt, wrapped, and has changed no record then.
func Open(cfg Config) (*Log, error) {
	if cfg.Disk != nil {
		return open(cfg, cfg.Disk)
	}
	return open(cfg, folder{cfg.Dir, cfg.NoSync})
}

func open(cfg Config, d Disk) (*Log, error) {
	cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, DefaultSegmentBytes)
	l := &Log{cfg: cfg, disk: d, changing: make(chan struct{}, 1)}
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return l, nil
}

func (l *Log) recover() (err error) {
	var acked mark
	if l.marker, acked, err = openMarker(l.disk); err != nil {
		return err
	}
	numbers, err := segmentNumbers(l.disk)
	if err != nil {
		return err
	}
	if len(numbers) == 0 || numbers[len(numbers)-1] < acked.segment {
		return fmt.Errorf("%w: the newest segment of the log is missing", ErrCorrupt)
	}
	var newest []byte
	for i, number := range numbers {
		if number != numbers[0]+uint64(i) {
			return fmt.Errorf("%w: segment %d of the log is missing", ErrCorrupt, numbers[0]+uint64(i))
		}
		if newest, err = l.load(number, acked, i == len(numbers)-1); err != nil {
			return err
		}
	}
	// A segment gets records only when the mark has been synced at its beginning.
	if last := numbers[len(numbers)-1]; acked.segment+1 < last || acked.segment < last && l.end > headerBytes {
		return fmt.Errorf("%w: the log's mark is older than the log", ErrCorrupt)
	}
	if uint64(len(l.entries)) != l.held.last+1-l.held.first {
		return fmt.Errorf("%w: the segment with log entry %d is missing", ErrCorrupt, l.held.first)
	}
	return l.cfg.Write("making the end of the log durable", func() error { return l.settle(newest, acked) })
}

// load reads and checks one segment, and returns its content.
func (l *Log) load(number uint64, acked mark, newest bool) ([]byte, error) {
	s, h, content, err := openSegment(l.disk, number)
	if err != nil {
		return nil, err
	}
	if len(l.segments) == 0 {
		l.held, l.chain = h.span, h.chain
	}
	l.segments = append(l.segments, s)
	if h.span != l.held || h.chain != l.chain {
		return nil, fmt.Errorf("%w: segment %d does not follow the one before", ErrCorrupt, number)
	}
	sawMark, err := l.replay(s, content, acked)
	if err != nil {
		return nil, err
	}
	rest := content[l.end:]
	clean := len(bytes.TrimRight(rest, "\x00")) == 0
	switch {
	case number == acked.segment && !sawMark:
		return nil, fmt.Errorf("%w: an acknowledged record at or behind %d of segment %d", ErrCorrupt, l.end, number)
	case !clean && !newest:
		return nil, fmt.Errorf("%w: segment %d at %d", ErrCorrupt, number, l.end)
	case !clean && hasRecord(content, number, l.end):
		return nil, fmt.Errorf("%w: record at %d of segment %d, with a good one behind it", ErrCorrupt, l.end, number)
	}
	return content, nil
}

// replay applies the good records of a segment up to the first that is not one,
// and says whether the log once was as the mark has it.
func (l *Log) replay(s *segment, content []byte, acked mark) (sawMark bool, err error) {
	for l.end = headerBytes; ; {
		if s.number == acked.segment && l.end == acked.end {
			sawMark = l.chain == acked.chain && l.held.last == acked.last
		}
		rec, err := decodeRecord(content, place{s.number, l.end})
		if err != nil {
			return sawMark, nil // judged by what is behind it
		}
		if rec.previous != l.chain {
			return false, fmt.Errorf("%w: record at %d of segment %d is not of this log", ErrCorrupt, l.end, s.number)
		}
		if err := l.apply(&rec, s); err != nil {
			return false, err
		}
		l.end, l.chain = rec.end, rec.sum
	}
}

// settle makes durable what the newest segment has above the mark, with zeros
// over a torn write. It is written once more, because a sync that failed in
// another process may have left it in memory only, where it looks clean.
func (l *Log) settle(content []byte, acked mark) error {
	newest := l.segments[len(l.segments)-1]
	from := int64(headerBytes)
	if newest.number == acked.segment {
		from = acked.end
	}
	used := int64(len(bytes.TrimRight(content, "\x00")))
	clear(content[l.end:])
	if to := max(used, l.end); to > from {
		if _, err := newest.file.WriteAt(content[from:to], from); err != nil {
			return err
		}
	}
	if err := newest.file.Sync(); err != nil {
		return err
	}
	if err := l.disk.Sync(); err != nil {
		return err
	}
	return l.syncMark(l.held.last)
}
