package wal

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/mutant"
)

// DefaultSegmentBytes is the size of a segment unless Config says otherwise. The
// append that begins one fills it with zeros first, so it is small: that takes
// some 4 ms.
const DefaultSegmentBytes = 4 << 20

// Config is what Create and Open need.
type Config struct {
	// Dir is the log's folder.
	Dir string
	// Disk, if set, is used in place of Dir.
	Disk Disk
	// SegmentBytes is the size of new segments; zero means DefaultSegmentBytes.
	// An append that does not fit gets a segment of its own size.
	SegmentBytes int64
	// Write runs one change of what is on disk. It must refuse every one after
	// one that failed: what is on disk is not known then. It is required.
	Write func(what string, change func() error) error
	// NoSync leaves out every sync, for tests.
	NoSync bool
}

// Log is a raft.LogStore. Its entries have no holes: an append far above the end
// drops what is below. It is safe for concurrent use.
type Log struct {
	cfg    Config
	disk   Disk
	marker *marker

	// changing holds a value while the log is changed, one change at a time: Raft
	// appends on its main goroutine and compacts on the one that takes snapshots. It
	// is no mutex because who holds it waits for the disk: in virtual time nothing
	// moves on while somebody waits for a mutex. It also owns the fields up to mu.
	changing chan struct{}
	// segments are all there are, oldest first; appends go to the last one.
	segments []*segment
	// end is where the next record goes, chain the sum of the one before it.
	end   int64
	chain uint32
	// buf is the memory of the newest record, for the next one.
	buf []byte

	mu sync.RWMutex
	// held and entries change only while changing is held.
	//
	// Invariant: entries[i] is the entry held.first+i, and it is on disk.
	held    span
	entries []entryRef
}

// entryRef is where an entry lies.
type entryRef struct {
	segment *segment
	extent
}

var _ raft.LogStore = (*Log)(nil)

// changed ends a change.
func (l *Log) changed() { <-l.changing }

// FirstIndex implements raft.LogStore: 0 if the log is empty.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.held.last == 0 {
		return 0, nil
	}
	return l.held.first, nil
}

// LastIndex implements raft.LogStore: 0 if the log is empty.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.held.last, nil
}

// GetLog implements raft.LogStore. It reads the entry from disk and checks it;
// an entry that cannot be read as it was written is ErrCorrupt.
func (l *Log) GetLog(index uint64, log *raft.Log) error {
	// Held during the read, so that the segment is not closed meanwhile.
	l.mu.RLock()
	defer l.mu.RUnlock()
	if index < l.held.first || index > l.held.last {
		return raft.ErrLogNotFound
	}
	ref := l.entries[index-l.held.first]
	raw := make([]byte, ref.bytes)
	if _, err := ref.segment.file.ReadAt(raw, ref.offset); err != nil {
		return fmt.Errorf("%w: log entry %d: %w", ErrCorrupt, index, err)
	}
	return decodeEntry(raw, index, log)
}

// Position says up to where the log is on disk: the number of the newest segment,
// times 2^32, and the offset in it. It grows with each change, and never goes down.
func (l *Log) Position() uint64 {
	l.changing <- struct{}{}
	defer l.changed()
	return l.segments[len(l.segments)-1].number<<32 | uint64(min(l.end, math.MaxUint32))
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. The entries must follow each other, and be
// above the end of the log; if they do not begin right behind it, they begin the
// log anew: the library appends like that above a snapshot it has installed.
func (l *Log) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	l.changing <- struct{}{}
	defer l.changed()
	next := l.held
	for i, log := range logs {
		if log.Index <= next.last || i > 0 && log.Index != next.last+1 {
			return fmt.Errorf("wal: log entry %d does not follow %d", log.Index, next.last)
		}
		if log.Index != next.last+1 {
			next.first = log.Index
		}
		next.last = log.Index
	}
	return l.add("writing log entries", next, logs)
}

// DeleteRange implements raft.LogStore: it cuts off the end of the log, its
// beginning, or all of it. A range in the middle takes everything below along.
func (l *Log) DeleteRange(lo, hi uint64) error {
	l.changing <- struct{}{}
	defer l.changed()
	next := l.held
	hi = min(hi, next.last)
	switch {
	case lo > hi || hi < next.first:
		return nil
	case hi == next.last && lo > next.first:
		next.last = lo - 1
	case hi == next.last:
		next = span{first: 1}
	default:
		next.first = hi + 1
	}
	return l.add("deleting log entries", next, nil)
}

// add puts a record at the end of the log, which is next after it, and removes
// the segments that the log needs no more.
func (l *Log) add(what string, next span, logs []*raft.Log) error {
	return l.cfg.Write(what, func() error {
		rec, err := l.write(next, logs)
		if err != nil {
			return err
		}
		if err := l.apply(&rec, l.segments[len(l.segments)-1]); err != nil {
			return err
		}
		return l.dropSegments()
	})
}

// write puts a record on disk, and then moves the mark over it.
func (l *Log) write(next span, logs []*raft.Log) (record, error) {
	rec, err := l.encode(next, logs)
	if err != nil {
		return record{}, err
	}
	newest := l.segments[len(l.segments)-1]
	if rec.end > newest.bytes {
		if newest, err = l.beginSegment(int64(len(l.buf))); err != nil {
			return record{}, err
		}
		// Its place is part of the record.
		if rec, err = l.encode(next, logs); err != nil {
			return record{}, err
		}
	}
	if _, err := newest.file.WriteAt(l.buf, l.end); err != nil {
		return record{}, err
	}
	if !mutant.On(mutant.LogNotSynced) {
		if err := newest.file.Sync(); err != nil {
			return record{}, err
		}
	}
	l.end, l.chain = rec.end, rec.sum
	return rec, l.marker.put(mark{newest.number, l.end, next.last, l.chain})
}

func (l *Log) encode(next span, logs []*raft.Log) (rec record, err error) {
	at := place{l.segments[len(l.segments)-1].number, l.end}
	l.buf, rec, err = appendRecord(l.buf[:0], at, next, l.chain, logs)
	return rec, err
}

// beginSegment begins a new segment, with room for a record of the given length.
func (l *Log) beginSegment(room int64) (*segment, error) {
	s, err := createSegment(l.disk, header{
		number: l.segments[len(l.segments)-1].number + 1,
		bytes:  max(l.cfg.SegmentBytes, headerBytes+room),
		span:   l.held,
		chain:  l.chain,
	})
	if err != nil {
		return nil, err
	}
	l.segments = append(l.segments, s)
	l.end = headerBytes
	return s, l.syncMark(l.held.last)
}

// syncMark puts the mark at the end of the log, and syncs it.
func (l *Log) syncMark(last uint64) error {
	err := l.marker.put(mark{l.segments[len(l.segments)-1].number, l.end, last, l.chain})
	if err != nil {
		return err
	}
	return l.marker.file.Sync()
}

// apply makes held and entries what they are after a record in the segment.
//
// While the log is opened, entries may have less than held at the beginning: the
// segments with the rest may have been removed rightly, which later records say.
func (l *Log) apply(rec *record, s *segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch base := rec.base(); {
	case base <= l.held.last:
		l.entries = l.entries[:max(0, len(l.entries)-int(l.held.last-base))]
	case rec.first == base+1:
		l.entries = nil
	default:
		return fmt.Errorf("%w: entries %d to %d do not follow %d", ErrCorrupt, base+1, rec.last, l.held.last)
	}
	for _, e := range rec.entries {
		l.entries = append(l.entries, entryRef{s, e})
	}
	l.held = rec.span
	if surplus := len(l.entries) - int(rec.last+1-rec.first); surplus > 0 {
		// A copy, so that the memory of what is dropped becomes free.
		l.entries = append([]entryRef(nil), l.entries[surplus:]...)
	}
	return nil
}

// dropSegments removes the segments without an entry of the log, up to the first
// that has one; the newest stays. The removals become durable in their order:
// a gap between segments would be damage.
func (l *Log) dropSegments() error {
	keep := l.segments[len(l.segments)-1]
	if len(l.entries) > 0 {
		keep = l.entries[0].segment
	}
	if mutant.On(mutant.LogSegmentDropped) {
		keep = l.segments[len(l.segments)-1]
	}
	for l.segments[0] != keep {
		oldest := l.segments[0]
		if err := errors.Join(oldest.file.Close(), l.disk.Remove(oldest.name())); err != nil {
			return err
		}
		if err := l.disk.Sync(); err != nil {
			return err
		}
		l.segments = l.segments[1:]
	}
	return nil
}

// Close closes all files. The log must not be used any more. An error means that
// the mark may not outlive a loss of power, or that a file was not closed.
func (l *Log) Close() error {
	l.changing <- struct{}{}
	defer l.changed()
	err := l.cfg.Write("closing the log", l.marker.file.Sync)
	return errors.Join(err, l.closeFiles())
}

func (l *Log) closeFiles() error {
	var errs []error
	for _, s := range l.segments {
		errs = append(errs, s.file.Close())
	}
	if l.marker != nil {
		errs = append(errs, l.marker.file.Close())
	}
	return errors.Join(errs...)
}
