package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/boltfile"
)

// tailIndex is the key of the tail record in the log's own bucket. It has the index of
// the last entry, and is written in the same transaction as the entries, so it costs no
// fsync; as the greatest key it shares the page of the newest entries, so it costs no
// page either. Without it, a page that lost its last entries would make the log look
// shorter, and acknowledged entries would be lost silently.
const tailIndex = math.MaxUint64

// checkedLog is the log below the cache: it adds checksums to what goes to the backend,
// checks what comes from it, and knows which entries must be there.
type checkedLog struct {
	backend raft.LogStore
	guard   *guard

	// changing holds a value while the log is changed, one change at a time: Raft appends
	// on its main goroutine and compacts on the one that takes snapshots. This costs
	// nothing, since bbolt writes one transaction at a time. It is not a mutex because
	// its holder waits for the disk: virtual time does not advance while a goroutine
	// waits for a mutex.
	//
	// Invariant: held is changed only by the holder of changing, so it is never set back
	// to an older range.
	changing chan struct{}

	mu   sync.RWMutex
	held indexRange
}

// indexRange is the unbroken run of entries at the end of the log.
//
// Invariant: every entry of it is in the backend and was read or written once. Before the
// first there may be older entries behind a gap: the library leaves one when it installs
// a snapshot far ahead of the log.
type indexRange struct {
	// first is 1 and last is 0 when the log is empty.
	first, last uint64
	// deletions counts the calls of DeleteRange.
	deletions uint64
}

func (s indexRange) holds(index uint64) bool {
	return s.first <= index && index <= s.last
}

func newCheckedLog(backend raft.LogStore, guard *guard) *checkedLog {
	return &checkedLog{backend: backend, guard: guard, changing: make(chan struct{}, 1), held: indexRange{first: 1}}
}

// changed ends a change.
func (l *checkedLog) changed() { <-l.changing }

func (l *checkedLog) heldRange() indexRange {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.held
}

func (l *checkedLog) setHeld(s indexRange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = s
}

// FirstIndex implements raft.LogStore.
func (l *checkedLog) FirstIndex() (first uint64, err error) {
	err = l.guard.read(func() error {
		first, err = l.backend.FirstIndex()
		return err
	})
	if first == tailIndex {
		first = 0
	}
	return first, err
}

// LastIndex implements raft.LogStore.
func (l *checkedLog) LastIndex() (uint64, error) {
	return l.heldRange().last, l.guard.err()
}

// GetLog implements raft.LogStore. A missing entry of the held range is damage, as is one
// with a wrong checksum.
func (l *checkedLog) GetLog(index uint64, log *raft.Log) error {
	if index == tailIndex {
		return raft.ErrLogNotFound
	}
	before := l.heldRange()
	var found raft.Log
	err := l.get(index, &found)
	switch {
	case errors.Is(err, ErrCorrupt):
		return l.guard.fail(err)
	case errors.Is(err, raft.ErrLogNotFound) && l.lost(index, before):
		return l.guard.fail(fmt.Errorf("%w: log entry %d is missing", ErrCorrupt, index))
	case errors.Is(err, raft.ErrLogNotFound), l.guard.err() != nil:
		return err
	case err != nil:
		return l.guard.fail(fmt.Errorf("%w: %w", ErrRead, err))
	}
	*log = found
	return nil
}

// lost reports whether an entry that was not found should have been: it was held before
// the read and still is, and nothing was deleted in between.
func (l *checkedLog) lost(index uint64, before indexRange) bool {
	after := l.heldRange()
	return before.holds(index) && after.holds(index) && before.deletions == after.deletions
}

// get reads and checks one entry. It does not stop the store.
func (l *checkedLog) get(index uint64, log *raft.Log) error {
	err := l.guard.read(func() error { return l.backend.GetLog(index, log) })
	switch {
	case err == nil:
		return stripChecksum(index, log)
	case errors.Is(err, raft.ErrLogNotFound), errors.Is(err, ErrCorrupt), l.guard.err() != nil:
		return err
	default:
		return fmt.Errorf("log entry %d: %w", index, boltfile.Classify(err, ErrCorrupt))
	}
}

// StoreLog implements raft.LogStore.
func (l *checkedLog) StoreLog(log *raft.Log) error {
	return l.StoreLogs([]*raft.Log{log})
}

// StoreLogs implements raft.LogStore. Entries and the new tail record are one
// transaction. Entries must follow the end of the log: the library deletes what it wants
// to replace. A log without entries may continue at any index.
func (l *checkedLog) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return l.guard.err()
	}
	l.changing <- struct{}{}
	defer l.changed()
	held := l.heldRange()
	if held.last == 0 && logs[0].Index > 0 {
		held.first, held.last = logs[0].Index, logs[0].Index-1
	}
	stored := make([]*raft.Log, 0, len(logs)+1)
	for _, log := range logs {
		if log.Index != held.last+1 || log.Index == tailIndex {
			return fmt.Errorf("store: log entry %d does not follow %d", log.Index, held.last)
		}
		held.last = log.Index
		stored = append(stored, withChecksum(log))
	}
	stored = append(stored, tailRecord(held.last))
	if err := l.guard.write("writing log entries", func() error { return l.backend.StoreLogs(stored) }); err != nil {
		return err
	}
	l.setHeld(held)
	return nil
}

// DeleteRange implements raft.LogStore. A truncation of the end writes the tail record
// first: a crash in between leaves entries beyond the tail, which load removes, and never
// a tail beyond the entries, which is damage.
func (l *checkedLog) DeleteRange(lo, hi uint64) error {
	l.changing <- struct{}{}
	defer l.changed()
	held := l.heldRange()
	hi = min(hi, held.last)
	if lo > hi {
		return l.guard.err()
	}
	held.deletions++
	switch {
	case hi == held.last && lo > held.first:
		held.last = lo - 1
	case hi == held.last:
		// The whole range is deleted; entries behind a gap go with it.
		lo, held.first, held.last = 1, 1, 0
	default:
		held.first = max(held.first, hi+1)
	}
	if held.last < hi {
		if err := l.writeTail(held.last); err != nil {
			return err
		}
	}
	// From here on reads must not expect the entries.
	l.setHeld(held)
	return l.deleteEntries(lo, hi)
}

func (l *checkedLog) deleteEntries(lo, hi uint64) error {
	return l.guard.write("deleting log entries", func() error { return l.backend.DeleteRange(lo, hi) })
}

func (l *checkedLog) writeTail(last uint64) error {
	return l.guard.write("writing the log's tail record", func() error {
		return l.backend.StoreLogs([]*raft.Log{tailRecord(last)})
	})
}

func tailRecord(last uint64) *raft.Log {
	return withChecksum(&raft.Log{Index: tailIndex, Data: binary.BigEndian.AppendUint64(nil, last)})
}

func (l *checkedLog) readTail() (uint64, error) {
	var tail raft.Log
	err := l.get(tailIndex, &tail)
	if errors.Is(err, raft.ErrLogNotFound) || err == nil && len(tail.Data) != 8 {
		return 0, fmt.Errorf("%w: the log's tail record is missing", ErrCorrupt)
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(tail.Data), nil
}

// load reads the log once, and finishes an interrupted deletion. It returns the number of
// entries read.
func (l *checkedLog) load(snapshotIndex uint64) (count int, err error) {
	held, last, err := l.scan(snapshotIndex)
	if err != nil {
		return 0, err
	}
	l.setHeld(held)
	return int(held.last + 1 - held.first), l.finishDeletion(last + 1)
}

// scan reads the log from its end down to the first gap, and fails if an entry above the
// newest snapshot is damaged or missing. last is the tail record's index.
func (l *checkedLog) scan(snapshotIndex uint64) (held indexRange, last uint64, err error) {
	if last, err = l.readTail(); err != nil {
		return held, 0, err
	}
	held = indexRange{first: last + 1, last: last}
	for ; held.first > 1; held.first-- {
		var log raft.Log
		err := l.get(held.first-1, &log)
		if errors.Is(err, raft.ErrLogNotFound) {
			break
		}
		if err != nil {
			return held, 0, err
		}
	}
	if err := checkReach(held, snapshotIndex); err != nil {
		return held, 0, err
	}
	if held.first > last {
		held = indexRange{first: 1}
	}
	return held, last, nil
}

// checkReach checks that no entry is missing between the newest snapshot and the log's
// end.
func checkReach(held indexRange, snapshotIndex uint64) error {
	if held.last > snapshotIndex && held.first > snapshotIndex+1 {
		return fmt.Errorf("%w: log entries %d to %d are missing (the newest snapshot ends at %d, the log at %d)",
			ErrCorrupt, snapshotIndex+1, held.first-1, snapshotIndex, held.last)
	}
	return nil
}

// Close implements entryLog: the file is the store's.
func (l *checkedLog) Close() error { return nil }

// finishDeletion deletes the entries beyond the tail: the rest of an interrupted
// deletion.
func (l *checkedLog) finishDeletion(from uint64) error {
	end := from
	for ; end < tailIndex; end++ {
		err := l.get(end, new(raft.Log))
		if errors.Is(err, raft.ErrLogNotFound) {
			break
		}
		if err != nil {
			return err
		}
	}
	if end == from {
		return nil
	}
	return l.deleteEntries(from, end-1)
}
