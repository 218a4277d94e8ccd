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

	"github.com/idnode/idnode/internal/disklock"
)

// Create creates an empty log in cfg.Dir, which must not exist and appears only when it
// is complete and on disk.
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

// layOutAnew creates the files of an empty log where a crash may have left some.
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

// layOut creates the files of an empty log. The chain begins with a random sum, so that
// another log's record is never taken for one of this log.
func layOut(d Disk, segmentBytes int64) error {
	var seed [4]byte
	_, _ = crand.Read(seed[:]) // never fails
	h := header{number: 1, bytes: cmp.Or(segmentBytes, DefaultSegmentBytes), indexRange: indexRange{first: 1}}
	h.chain = binary.BigEndian.Uint32(seed[:])
	s, err := prepareSegment(d, h.number, h.bytes)
	if err != nil {
		return err
	}
	if err := errors.Join(s.begin(d, h, nil), s.file.Close()); err != nil {
		return err
	}
	if err := createMarker(d, mark{segment: h.number, end: headerBytes, chain: h.chain}); err != nil {
		return err
	}
	return d.Sync()
}

// Open opens the log in cfg.Dir, reads and checks all of it, and truncates a torn write.
// If it returns ErrCorrupt or dirfile.ErrOtherVersion, wrapped, it has changed no record.
func Open(cfg Config) (*Log, error) {
	if cfg.Disk != nil {
		return open(cfg, cfg.Disk)
	}
	return open(cfg, folder{cfg.Dir, cfg.NoSync})
}

func open(cfg Config, d Disk) (*Log, error) {
	cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, DefaultSegmentBytes)
	if cfg.task == nil {
		cfg.task = newBackground
	}
	l := &Log{cfg: cfg, disk: d, changing: disklock.New(), preparing: cfg.task(), dropping: cfg.task()}
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return l, nil
}

// recover reads the log, and repairs it after a crash.
func (l *Log) recover() error {
	s, err := l.scan()
	if err != nil {
		return err
	}
	return l.cfg.Write("making the end of the log durable", func() error { return l.settle(s) })
}

// scanned is what scan found in addition to the log.
type scanned struct {
	acked mark
	// newest is the content of the newest segment.
	newest []byte
	// draft means that the newest segment does not have its final name yet.
	draft bool
	// below are segments below a gap, and drafts those that are neither part of the log nor
	// its next segment.
	below  []uint64
	drafts []string
}

// scan reads and checks the log, and changes nothing.
func (l *Log) scan() (found scanned, err error) {
	if l.marker, found.acked, err = openMarker(l.disk); err != nil {
		return found, err
	}
	listed, err := list(l.disk)
	if err != nil {
		return found, err
	}
	var run []uint64
	found.below, run = listed.run()
	for i, number := range run {
		name := fmt.Sprintf(nameFormat, number)
		if found.newest, err = l.load(number, name, found.acked, i == len(run)-1); err != nil {
			return found, err
		}
	}
	if err := l.adopt(listed.drafts, &found); err != nil {
		return found, err
	}
	if len(run) == 0 || found.acked.segment < run[0] || l.newest().number < found.acked.segment {
		return found, fmt.Errorf("%w: the segment of the log's mark is missing", ErrCorrupt)
	}
	if uint64(len(l.entries)) != l.held.last+1-l.held.first {
		return found, fmt.Errorf("%w: the segment with log entry %d is missing", ErrCorrupt, l.held.first)
	}
	return found, nil
}

// adopt makes the draft that continues the log part of it: a loss of power may have
// undone its rename. One without a sound header counts as never begun, and stays as the file
// of the next segment; if the mark is in it, scan reports it as missing. One whose header the system cannot read may have
// acknowledged records, so it is not skipped.
func (l *Log) adopt(drafts []string, found *scanned) error {
	for _, name := range drafts {
		if len(l.segments) == 0 || name != (&segment{number: l.newest().number + 1}).draft() {
			found.drafts = append(found.drafts, name)
			continue
		}
		next, _, _, err := openSegment(l.disk, l.newest().number+1, name)
		if errors.Is(err, ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		if err := next.file.Close(); err != nil {
			return err
		}
		if len(bytes.TrimRight(found.newest[l.end:], "\x00")) > 0 {
			return fmt.Errorf("%w: segment %d at %d", ErrCorrupt, l.newest().number, l.end)
		}
		found.draft = true
		if found.newest, err = l.load(next.number, name, found.acked, true); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) load(number uint64, name string, acked mark, newest bool) ([]byte, error) {
	s, h, content, err := openSegment(l.disk, number, name)
	if err != nil {
		return nil, err
	}
	if len(l.segments) == 0 {
		l.held, l.chain = h.indexRange, h.chain
	}
	l.segments = append(l.segments, s)
	if h.indexRange != l.held || h.chain != l.chain {
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

// replay applies the good records of a segment up to the first bad one, and reports
// whether the log passed the mark's state.
func (l *Log) replay(s *segment, content []byte, acked mark) (sawMark bool, err error) {
	for l.end = headerBytes; ; {
		if s.number == acked.segment && l.end == acked.end {
			sawMark = l.chain == acked.chain && l.held.last == acked.last
		}
		rec, err := decodeRecord(content, recordPos{s.number, l.end})
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

// settle makes the records above the mark durable, with zeros over a torn write. It
// writes them once more, because a failed sync of another process may have left them in
// memory only, where they look clean. Then it removes unneeded files.
func (l *Log) settle(found scanned) error {
	newest := l.newest()
	from := int64(headerBytes)
	if newest.number == found.acked.segment {
		from = found.acked.end
	}
	used := int64(len(bytes.TrimRight(found.newest, "\x00")))
	clear(found.newest[l.end:])
	if to := max(used, l.end); to > from {
		if _, err := newest.file.WriteAt(found.newest[from:to], from); err != nil {
			return err
		}
	}
	if err := newest.file.Sync(); err != nil {
		return err
	}
	if found.draft {
		if err := l.disk.Rename(newest.draft(), newest.name()); err != nil {
			return err
		}
	}
	if err := l.disk.Sync(); err != nil {
		return err
	}
	l.named.Store(newest.number)
	if err := l.putMark(l.held.last); err != nil {
		return err
	}
	if err := l.marker.sync(); err != nil {
		return err
	}
	if err := l.clean(found); err != nil {
		return err
	}
	l.reserve()
	return nil
}

func (l *Log) clean(found scanned) error {
	for _, name := range found.drafts {
		if err := l.disk.Remove(name); err != nil {
			return err
		}
	}
	for _, number := range found.below {
		if err := l.disk.Remove(fmt.Sprintf(nameFormat, number)); err != nil {
			return err
		}
	}
	if len(found.below) == 0 {
		return nil
	}
	return l.disk.Sync()
}
