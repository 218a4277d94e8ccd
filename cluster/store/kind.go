package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/boltfile"
)

// LogKind is the kind of log of a data directory. It never changes.
type LogKind string

const (
	// LogAuto is the directory's kind, and LogWAL in a new one.
	LogAuto LogKind = "auto"
	// LogBolt keeps the log in raft.db: two syncs for each append.
	LogBolt LogKind = "bolt"
	// LogWAL keeps the log in log/, with one sync for each append. Term, vote and
	// node id stay in raft.db.
	LogWAL LogKind = "wal"
)

// ErrLogKind means that the directory's log is of another kind than wanted.
var ErrLogKind = errors.New("the log in the data directory is of another kind")

// logDir is the folder of a LogWAL.
const logDir = "log"

// keyLogKind marks a raft.db without a log; a file without the key is LogBolt's. It sorts
// before keyNodeID, so it is not the first to be lost, and without it a LogWAL's raft.db
// is damaged: it has no tail record.
var keyLogKind = []byte("~idnode.log")

// A new raft.db of a LogWAL has kindNew until the folder is there. This distinguishes a
// crash during the first start from a lost folder, and a folder with entries beside a new
// raft.db from one that belongs to it.
const (
	kindNew = "wal, not yet made"
	kindWAL = string(LogWAL)
)

// entryLog is a log below the cache.
type entryLog interface {
	raft.LogStore
	// load is called once, before everything else. It checks all entries above
	// the newest snapshot, and returns how many entries it has read.
	load(snapshotIndex uint64) (count int, err error)
	io.Closer
}

// openLog returns the directory's log, which must be of the requested kind, if any; it
// is not loaded yet.
func (s *Store) openLog(backend raft.LogStore) (entryLog, error) {
	recorded, err := s.stable.Get(keyLogKind)
	if err != nil && !errors.Is(err, errNoKey) {
		return nil, err
	}
	kind := LogBolt
	if err == nil {
		kind = LogWAL
	}
	if s.cfg.Log != LogAuto && s.cfg.Log != kind {
		return nil, fmt.Errorf("%w: it is %[2]s, not %[3]s: start with log-store %[2]s or auto; for another kind, "+
			"remove this node from the cluster and let it join with an empty directory", ErrLogKind, kind, s.cfg.Log)
	}
	if kind == LogBolt {
		return newCheckedLog(backend, s.guard), nil
	}
	l := &walLog{guard: s.guard, owner: []byte(s.cfg.NodeID), cfg: wal.Config{
		Dir: filepath.Join(s.cfg.Dir, logDir), SegmentBytes: s.cfg.segmentBytes,
		Owner: []byte(s.cfg.NodeID), Write: s.guard.write, NoSync: s.cfg.noSync,
	}}
	if string(recorded) == kindNew {
		return l, s.firstLog(l.cfg)
	}
	return l, nil
}

// firstLog creates the folder of a new LogWAL, unless it exists after a crash.
func (s *Store) firstLog(cfg wal.Config) error {
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
	return s.stable.Set(keyLogKind, []byte(kindWAL))
}

func mustBeEmpty(cfg wal.Config) error {
	l, err := wal.Open(cfg)
	if err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err == nil && last > 0 {
		err = fmt.Errorf("%w: there is no %s beside a log that ends at %d", ErrMissing, fileName, last)
	}
	return errors.Join(err, l.Close())
}

// walLog is a wal.Log under the guard, with a mark beside its folder: the log's own mark
// is inside, and does not detect an older copy of the whole folder.
type walLog struct {
	cfg   wal.Config
	owner []byte
	guard *guard
	// log and mark are nil until the log is loaded.
	log  *wal.Log
	mark *boltfile.Mark
}

// load implements entryLog: Open has read everything.
func (l *walLog) load(snapshotIndex uint64) (count int, err error) {
	if l.log, err = wal.Open(l.cfg); err != nil {
		return 0, err
	}
	if l.mark, err = boltfile.OpenMark(l.cfg.Dir, l.owner, l.log.Position()); err != nil {
		return 0, fmt.Errorf("%s: %w", logDir, classify(err))
	}
	first, _ := l.log.FirstIndex() // never fails
	last, _ := l.log.LastIndex()
	if last == 0 {
		return 0, nil
	}
	return int(last - first + 1), checkReach(indexRange{first: first, last: last}, snapshotIndex)
}

// Close implements io.Closer.
func (l *walLog) Close() error {
	var errs []error
	if l.log != nil {
		errs = append(errs, l.log.Close())
	}
	if l.mark != nil {
		errs = append(errs, l.mark.Close())
	}
	return errors.Join(errs...)
}

// FirstIndex implements raft.LogStore.
func (l *walLog) FirstIndex() (first uint64, err error) {
	err = l.guard.read(func() error {
		first, err = l.log.FirstIndex()
		return err
	})
	return first, err
}

// LastIndex implements raft.LogStore.
func (l *walLog) LastIndex() (last uint64, err error) {
	err = l.guard.read(func() error {
		last, err = l.log.LastIndex()
		return err
	})
	return last, err
}

// GetLog implements raft.LogStore. Damage ends the store, as does a failed read.
func (l *walLog) GetLog(index uint64, log *raft.Log) error {
	err := l.guard.read(func() error { return l.log.GetLog(index, log) })
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
	if err := l.guard.err(); err != nil {
		return err
	}
	if err := l.log.StoreLogs(logs); err != nil {
		return err
	}
	return l.moveMark()
}

// moveMark follows what is on disk.
func (l *walLog) moveMark() error {
	return l.guard.change("moving the log's mark", func() error { return l.mark.Put(l.log.Position()) })
}

// DeleteRange implements raft.LogStore.
func (l *walLog) DeleteRange(lo, hi uint64) error {
	if err := l.guard.err(); err != nil {
		return err
	}
	if err := l.log.DeleteRange(lo, hi); err != nil {
		return err
	}
	return l.moveMark()
}
