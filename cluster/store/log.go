package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/boltfile"
)

// logDir is the log's folder.
const logDir = "log"

// openLog opens the log, which checks all of it, and puts the cache above it.
func (s *Store) openLog() error {
	started := time.Now()
	cfg := wal.Config{
		Dir: filepath.Join(s.cfg.Dir, logDir), Disk: s.cfg.disk, SegmentBytes: s.cfg.segmentBytes,
		Owner: []byte(s.cfg.NodeID), Write: s.guard.write, NoSync: s.cfg.noSync,
	}
	if err := s.firstLog(cfg); err != nil {
		return err
	}
	log, err := wal.Open(cfg)
	if err != nil {
		return err
	}
	s.log = &walLog{log: log, guard: s.guard}
	if s.log.mark, err = boltfile.OpenMark(cfg.Dir, cfg.Owner, log.Position()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", logDir, classify(err)), log.Close())
	}
	first, last := rangeOf(log)
	if err := checkReach(first, last, s.snapshots.newestIndex); err != nil {
		return errors.Join(err, s.log.Close())
	}
	s.cfg.Logger.Info("raft log verified", "first", first, "last", last, "took", time.Since(started).String())
	s.cache, err = raft.NewLogCache(s.cfg.cacheEntries, s.log)
	return err
}

// firstLog creates the folder of a new node's log, unless it exists after a crash.
func (s *Store) firstLog(cfg wal.Config) error {
	if _, err := s.stable.Get(keyLogMade); !errors.Is(err, errNoKey) {
		return err
	}
	_, err := os.Stat(cfg.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = wal.Create(cfg)
	case err == nil:
		err = mustBeEmpty(cfg)
	}
	if err != nil {
		return err
	}
	return s.stable.Set(keyLogMade, []byte{1})
}

func mustBeEmpty(cfg wal.Config) error {
	l, err := wal.Open(cfg)
	if err != nil {
		return err
	}
	if _, last := rangeOf(l); last > 0 {
		err = fmt.Errorf("%w: there is no %s beside a log that ends at %d", ErrMissing, fileName, last)
	}
	return errors.Join(err, l.Close())
}

// rangeOf returns the indexes of the log's ends, zeros if it is empty.
func rangeOf(l *wal.Log) (first, last uint64) {
	first, _ = l.FirstIndex() // Neither fails.
	last, _ = l.LastIndex()
	return first, last
}

// checkReach checks that no entry is missing between the newest snapshot and the log's
// end.
func checkReach(first, last, snapshotIndex uint64) error {
	if last > snapshotIndex && first > snapshotIndex+1 {
		return fmt.Errorf("%w: log entries %d to %d are missing (the newest snapshot ends at %d, the log at %d)",
			ErrCorrupt, snapshotIndex+1, first-1, snapshotIndex, last)
	}
	return nil
}

// walLog is a wal.Log under the guard, with a mark beside its folder: the log's own mark
// is inside, and does not detect an older copy of the whole folder.
type walLog struct {
	log   *wal.Log
	mark  *boltfile.Mark
	guard *guard
}

// Close implements io.Closer.
func (l *walLog) Close() error { return errors.Join(l.log.Close(), l.mark.Close()) }

// FirstIndex implements raft.LogStore.
func (l *walLog) FirstIndex() (uint64, error) {
	first, _ := rangeOf(l.log)
	return first, l.guard.err()
}

// LastIndex implements raft.LogStore.
func (l *walLog) LastIndex() (uint64, error) {
	_, last := rangeOf(l.log)
	return last, l.guard.err()
}

// GetLog implements raft.LogStore. Damage ends the store, as does a failed read.
func (l *walLog) GetLog(index uint64, log *raft.Log) error {
	if err := l.guard.err(); err != nil {
		return err
	}
	err := l.log.GetLog(index, log)
	switch {
	case err == nil, errors.Is(err, raft.ErrLogNotFound):
		return err
	case errors.Is(err, ErrCorrupt):
		return l.guard.fail(err)
	}
	return l.guard.fail(fmt.Errorf("%w: %w", ErrRead, err))
}

// StoreLog implements raft.LogStore.
func (l *walLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (l *walLog) StoreLogs(logs []*raft.Log) error {
	return l.change(func() error { return l.log.StoreLogs(logs) })
}

// DeleteRange implements raft.LogStore.
func (l *walLog) DeleteRange(lo, hi uint64) error {
	return l.change(func() error { return l.log.DeleteRange(lo, hi) })
}

// change runs a change, which the log puts under the guard, and moves the mark to what is
// on disk.
func (l *walLog) change(do func() error) error {
	if err := l.guard.err(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return l.guard.change("moving the log's mark", func() error { return l.mark.Put(l.log.Position()) })
}
