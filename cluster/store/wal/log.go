package wal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/disklock"
)

// DefaultSegmentBytes is the size of a segment unless Config says otherwise. It is small
// because it is filled with zeros first, which takes some 4 ms.
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
	// Owner is the log's owner. Segments are shorter by up to a quarter, depending on it,
	// so that the nodes of a cluster do not begin segments at the same entry.
	Owner []byte
	// Write runs one change of the disk. After a failed one it must refuse every other:
	// the disk's content is unknown then. It is required.
	Write func(what string, change func() error) error
	// NoSync leaves out every sync, for tests.
	NoSync bool

	// task makes the runner of background work; nil means goroutines.
	task func() task
}

// Log is a raft.LogStore. Its entries have no gaps; a log without entries may continue at
// any index. It is safe for concurrent use.
type Log struct {
	cfg    Config
	disk   Disk
	marker *marker

	// changing is held while the log is changed, one change at a time: Raft appends on its
	// main goroutine and compacts on the one that takes snapshots. It also owns the fields
	// up to mu.
	changing disklock.Mutex
	// segments are all segments, oldest first; appends go to the last one.
	segments []*segment
	// end is where the next record goes, chain the sum of the one before it.
	end   int64
	chain uint32
	// buf is the memory of the newest record, for the next one.
	buf []byte
	// asked means that the next segment was requested of preparing.
	asked bool

	// preparing makes next, the segment after the newest. While it runs, next is its own;
	// otherwise it belongs to the holder of changing.
	preparing task
	next      *segment
	// named is the number of the newest segment whose name is on disk.
	named atomic.Uint64
	// dropping removes segments; surplus are those still to be removed.
	dropping task
	surplus  []*segment

	mu sync.RWMutex
	// held and entries change only while changing is held.
	//
	// Invariant: entries[i] is the entry held.first+i, and it is on disk.
	held    indexRange
	entries []entryRef
}

type entryRef struct {
	segment *segment
	extent
}

// Range returns the first and the last index, zeros for a log without entries.
func (l *Log) Range() (first, last uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.held.last == 0 {
		return 0, 0
	}
	return l.held.first, l.held.last
}

// FirstIndex implements raft.LogStore: 0 if the log is empty.
func (l *Log) FirstIndex() (uint64, error) {
	first, _ := l.Range()
	return first, nil
}

// LastIndex implements raft.LogStore: 0 if the log is empty.
func (l *Log) LastIndex() (uint64, error) {
	_, last := l.Range()
	return last, nil
}

// GetLog implements raft.LogStore. It reads the entry from disk and checks it; an entry
// that is not as it was written is ErrCorrupt. An error of the system is not: the content
// was not seen.
func (l *Log) GetLog(index uint64, log *raft.Log) error {
	// Held during the read, so that the segment is not closed.
	l.mu.RLock()
	defer l.mu.RUnlock()
	if index < l.held.first || index > l.held.last {
		return raft.ErrLogNotFound
	}
	ref := l.entries[index-l.held.first]
	raw := make([]byte, ref.bytes)
	if _, err := ref.segment.file.ReadAt(raw, ref.offset); err != nil {
		return unread(fmt.Sprint("log entry ", index), err)
	}
	return decodeEntry(raw, index, log)
}

// Position is the end of the log on disk: the number of the newest segment, times 2^32,
// plus the offset in it. It grows with each change, and never falls.
func (l *Log) Position() uint64 {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.newest().number<<32 | uint64(min(l.end, math.MaxUint32))
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. The entries must follow each other and the end of
// the log; a log without entries may continue at any index, as it does after an installed
// snapshot.
func (l *Log) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	return l.change("writing log entries", logs, func(next indexRange) (indexRange, error) {
		if next.last == 0 && logs[0].Index > 0 {
			next = indexRange{logs[0].Index, logs[0].Index - 1}
		}
		for _, log := range logs {
			if log.Index != next.last+1 {
				return next, fmt.Errorf("wal: log entry %d does not follow %d", log.Index, next.last)
			}
			next.last = log.Index
		}
		return next, nil
	})
}

// DeleteRange implements raft.LogStore: it deletes the end of the log, its beginning, or
// all of it. A range in the middle also deletes everything below.
func (l *Log) DeleteRange(lo, hi uint64) error {
	return l.change("deleting log entries", nil, func(next indexRange) (indexRange, error) {
		hi := min(hi, next.last)
		switch {
		case lo > hi || hi < next.first:
		case hi == next.last && lo > next.first:
			next.last = lo - 1
		case hi == next.last:
			next = indexRange{first: 1}
		default:
			next.first = hi + 1
		}
		return next, nil
	})
}

// change sets the log to the range that after returns, by a record at its end. Unneeded
// segments are removed after the change, while the next one may begin.
func (l *Log) change(what string, logs []*raft.Log, after func(held indexRange) (indexRange, error)) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	next, err := after(l.held)
	if err != nil || next == l.held {
		return err
	}
	err = l.cfg.Write(what, func() error {
		rec, err := l.write(next, logs)
		if err != nil {
			return err
		}
		return l.apply(&rec, l.newest())
	})
	if err != nil {
		return err
	}
	l.prepareFirst()
	l.dropSurplus()
	return nil
}

func (l *Log) newest() *segment { return l.segments[len(l.segments)-1] }

// write puts a record on disk, and then moves the mark past it.
func (l *Log) write(next indexRange, logs []*raft.Log) (record, error) {
	newest, bytes := l.newest(), recordBytes(logs)
	if l.end+bytes > newest.bytes {
		return l.writeFirst(next, logs, bytes)
	}
	rec, err := l.encode(recordPos{newest.number, l.end}, next, logs)
	if err != nil {
		return record{}, err
	}
	if _, err := newest.file.WriteAt(l.buf, l.end); err != nil {
		return record{}, err
	}
	if err := newest.file.Sync(); err != nil {
		return record{}, err
	}
	l.end, l.chain = rec.end, rec.sum
	return rec, l.putMark(next.last)
}

func (l *Log) encode(at recordPos, next indexRange, logs []*raft.Log) (rec record, err error) {
	l.buf, rec, err = appendRecord(l.buf[:0], at, next, l.chain, logs)
	return rec, err
}

func (l *Log) putMark(last uint64) error {
	return l.marker.put(mark{l.newest().number, l.end, last, l.chain})
}

// apply updates held and entries for a record in the segment.
//
// During Open, entries may lack the beginning of held: those segments may have been
// removed rightly, as later records show.
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
	l.held = rec.indexRange
	if surplus := len(l.entries) - int(rec.last+1-rec.first); surplus > 0 {
		// A copy, so that the memory of dropped entries is freed.
		l.entries = append([]entryRef(nil), l.entries[surplus:]...)
	}
	return nil
}

// Close waits for background work and closes all files; on a hanging disk it hangs too.
// The log must not be used afterwards. An error means that the mark may not outlive a
// loss of power, or that a file was not closed.
func (l *Log) Close() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	err := l.cfg.Write("closing the log", func() error {
		l.rest()
		if old := l.surplus; l.mayDrop() {
			l.surplus = nil
			l.drop(old)
		}
		return l.marker.sync()
	})
	l.rest() // Write does nothing after a failure.
	if l.next != nil {
		err = errors.Join(err, l.next.file.Close()) // The next Open uses its file.
	}
	return errors.Join(err, l.closeFiles())
}

func (l *Log) rest() {
	l.preparing.wait()
	l.dropping.wait()
}

func (l *Log) closeFiles() error {
	var errs []error
	for _, s := range slices.Concat(l.segments, l.surplus) {
		errs = append(errs, s.file.Close())
	}
	if l.marker != nil {
		errs = append(errs, l.marker.file.Close())
	}
	return errors.Join(errs...)
}
