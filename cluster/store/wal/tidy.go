package wal

import (
	"errors"
	"math"
	"strconv"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/crc32c"
)

// task runs work in the background, one at a time.
type task interface {
	// try starts work and returns true, unless other work is in progress.
	try(work func()) bool
	wait()
}

// background is a task with a goroutine for each work, so that a log that is never closed
// leaks none. The channel holds a value while one runs.
type background chan struct{}

func newBackground() task { return make(background, 1) }

func (b background) try(work func()) bool {
	select {
	case b <- struct{}{}:
		go func() {
			defer func() { <-b }()
			work()
		}()
		return true
	default:
		return false
	}
}

func (b background) wait() {
	b <- struct{}{}
	<-b
}

// writeFirst puts a record on disk as the first of a new segment.
//
// It waits for the record alone: the segment was prepared, and neither its new name nor
// the mark need be on disk before the record is acknowledged.
func (l *Log) writeFirst(next indexRange, logs []*raft.Log, bytes int64) (record, error) {
	s, err := l.takeNext(headerBytes + bytes)
	if err != nil {
		return record{}, err
	}
	rec, err := l.encode(recordPos{s.number, headerBytes}, next, logs)
	if err != nil {
		return record{}, err
	}
	err = s.begin(l.disk, header{number: s.number, bytes: s.bytes, indexRange: l.held, chain: l.chain}, l.buf)
	if err != nil {
		return record{}, err
	}
	l.segments = append(l.segments, s)
	l.end, l.chain = rec.end, rec.sum
	err = l.putMark(next.last)
	l.asked = l.preparing.try(func() { // Nothing is in flight since takeNext.
		l.persistSegmentStart(s.number)
		l.prepare(s.number + 1)
	})
	return rec, err
}

// persistSegmentStart makes the start of a segment durable. The next one is prepared only
// after that, so at most one segment of the log is still a draft on disk.
func (l *Log) persistSegmentStart(number uint64) {
	err := l.disk.Sync()
	if err == nil {
		l.named.Store(number)
		err = l.marker.sync()
	}
	l.fail("beginning a segment", err)
}

// fail makes every later change fail with an error of background work.
func (l *Log) fail(what string, err error) {
	if err != nil {
		_ = l.cfg.Write(what, func() error { return err }) // Each later change returns it.
	}
}

// prepareFirst starts the preparation of the first segment since Open, once the log is
// used.
func (l *Log) prepareFirst() {
	if l.asked || l.end < l.newest().bytes/4 {
		return
	}
	number := l.newest().number + 1
	l.asked = l.preparing.try(func() { l.prepare(number) })
}

// reserve makes the file of the next segment, without content, so that it needs no inode later.
// Its error is ignored, as prepare's is.
func (l *Log) reserve() {
	s := &segment{number: l.newest().number + 1}
	if s.openDraft(l.disk) == nil {
		_ = s.file.Close()
	}
}

// prepare makes the next segment. Its error is ignored: the append that needs the segment
// creates it itself.
func (l *Log) prepare(number uint64) {
	l.next, _ = prepareSegment(l.disk, number, l.sizeOf(number))
}

// takeNext returns the next segment, with at least the given size.
func (l *Log) takeNext(bytes int64) (*segment, error) {
	l.preparing.wait()
	s := l.next
	l.next, l.asked = nil, false
	if s != nil && s.bytes >= bytes {
		return s, nil
	}
	if s != nil {
		if err := s.file.Close(); err != nil {
			return nil, err
		}
	}
	number := l.newest().number + 1
	return prepareSegment(l.disk, number, max(l.sizeOf(number), bytes))
}

func (l *Log) sizeOf(number uint64) int64 {
	if len(l.cfg.Owner) == 0 {
		return l.cfg.SegmentBytes
	}
	sum := crc32c.Sum(l.cfg.Owner, strconv.AppendUint(nil, number, 10))
	return l.cfg.SegmentBytes - l.cfg.SegmentBytes/4*int64(sum)/math.MaxUint32
}

// dropSurplus starts the removal of the segments without an entry of the log, up to the
// first that has one; the newest stays. While a removal runs, or none may, it leaves them
// to the next change.
func (l *Log) dropSurplus() {
	keep := l.newest()
	if len(l.entries) > 0 {
		keep = l.entries[0].segment
	}
	for l.segments[0] != keep {
		l.surplus = append(l.surplus, l.segments[0])
		l.segments = l.segments[1:]
	}
	if old := l.surplus; len(old) > 0 && l.mayDrop() && l.dropping.try(func() { l.drop(old) }) {
		l.surplus = nil
	}
}

// mayDrop reports whether the name of the oldest segment that stays is on disk. Without it
// a loss of power could keep the removals, and leave a draft with no segment before it.
func (l *Log) mayDrop() bool { return l.segments[0].number <= l.named.Load() }

// drop removes unneeded segments, oldest first. They are no longer read: entries in them
// are no longer found. One sync makes all removals durable; a loss of power before it may
// keep any of them, which Open removes.
func (l *Log) drop(old []*segment) {
	if len(old) == 0 {
		return
	}
	// The mark must not be set back to a segment that is gone.
	err := l.marker.sync()
	for _, s := range old {
		err = errors.Join(err, s.file.Close())
		if err == nil {
			err = l.disk.Remove(s.name())
		}
	}
	if err == nil {
		err = l.disk.Sync()
	}
	l.fail("removing old segments", err)
}
