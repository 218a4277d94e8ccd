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
	"github.com/idnode/idnode/internal/failpoint"
)

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
	s.log = log
	if s.mark, err = boltfile.OpenMark(cfg.Dir, cfg.Owner, log.Position()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", logDir, classify(err)), log.Close())
	}
	first, last := log.Range()
	if err := checkReach(first, last, s.snapshots.end.Load()); err != nil {
		return errors.Join(err, s.closeLog())
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
	if _, last := l.Range(); last > 0 {
		err = fmt.Errorf("%w: there is no %s beside a log that ends at %d", ErrMissing, fileName, last)
	}
	return errors.Join(err, l.Close())
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

func (s *Store) closeLog() error { return errors.Join(s.log.Close(), s.mark.Close()) }

func (s *Store) FirstIndex() (uint64, error) {
	first, _ := s.log.Range()
	return first, s.guard.err()
}

func (s *Store) LastIndex() (uint64, error) {
	_, last := s.log.Range()
	return last, s.guard.err()
}

// GetLog implements raft.LogStore. The newest entries come from memory. Damage ends the
// store, as does a failed read.
func (s *Store) GetLog(index uint64, log *raft.Log) error {
	if err := s.guard.err(); err != nil {
		return err
	}
	err := s.cache.GetLog(index, log)
	switch {
	case err == nil, errors.Is(err, raft.ErrLogNotFound):
		return err
	case errors.Is(err, ErrCorrupt):
		return s.guard.fail(err)
	}
	return s.guard.fail(fmt.Errorf("%w: %w", ErrRead, err))
}

func (s *Store) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. When it returns nil the entries are on
// disk. Every error is final for this store, but the refusal of entries that do not follow the
// log or the newest snapshot.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	if err := s.checkBegin(logs); err != nil {
		return err
	}
	failpoint.Hit(failpoint.LogBefore)
	if err := s.change(func() error { return s.cache.StoreLogs(logs) }); err != nil {
		// The cache keeps only the text of an error.
		return errors.Join(err, s.guard.err())
	}
	failpoint.Hit(failpoint.LogAfter)
	return nil
}

// checkBegin checks that a log without entries continues right after the newest snapshot.
// One with entries knows what follows them.
func (s *Store) checkBegin(logs []*raft.Log) error {
	last, err := s.LastIndex()
	if err != nil || last > 0 || len(logs) == 0 {
		return err
	}
	if end := s.snapshots.end.Load(); logs[0].Index != end+1 {
		return fmt.Errorf("store: log entry %d does not follow the newest snapshot, which ends at %d", logs[0].Index, end)
	}
	return nil
}

// DeleteRange implements raft.LogStore. Every error is final for this store.
func (s *Store) DeleteRange(first, last uint64) error {
	failpoint.Hit(failpoint.DeleteBefore)
	defer failpoint.Hit(failpoint.DeleteAfter)
	return s.change(func() error { return s.cache.DeleteRange(first, last) })
}

// change changes the log, which puts its writes under the guard, and moves the mark to what
// is on disk.
func (s *Store) change(do func() error) error {
	if err := s.guard.err(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return s.guard.change("moving the log's mark", func() error { return s.mark.Put(s.log.Position()) })
}
