package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/boltfile"
)

// Errors that Open and the store's methods wrap; test for them with errors.Is.
var (
	// ErrCorrupt means that data on disk is not what was written.
	ErrCorrupt = wal.ErrCorrupt
	// ErrStalled means that a write took longer than the watchdog allows.
	ErrStalled = errors.New("a write to the disk stalled")
	// ErrWrite means that a write failed, so that the disk's content is unknown.
	ErrWrite = errors.New("a write to the disk failed")
	// ErrRead means that the system could not read the disk. The content was not seen, so
	// it is not damage.
	ErrRead = errors.New("a read from the disk failed")
	// ErrInUse means that another process has the directory open.
	ErrInUse = errors.New("data directory is in use by another process: stop it first")
	// ErrForeign means that the directory belongs to another node id.
	ErrForeign = errors.New("data directory belongs to another node")
	// ErrMissing means that the file should exist and does not.
	ErrMissing = errors.New("the Raft log is missing")
)

const (
	// cacheEntries is how many of the newest log entries are kept in memory.
	cacheEntries = 512
	// closeExtra is how much longer than one write Close may take. A write that stalls
	// has ended the node by then.
	closeExtra = time.Second
	// retainedSnapshots is how many snapshots stay on disk. Only the newest is ever used;
	// the previous one is kept for operators.
	retainedSnapshots = 2

	fileName = "raft.db"
)

// keyNodeID holds the file's owner. It sorts after every key of the Raft library, so a
// leaf page that loses its last keys loses this one first, which is detected.
var keyNodeID = []byte("~idnode.node-id")

// Where raft.db records the state of the directory's other files: how often node.json was
// written, that the log's folder was made, and how far the newest snapshot reaches. They
// sort before keyNodeID, so none is the first to be lost.
var (
	keyRevision = []byte("~idnode.json-revision")
	keyLogMade  = []byte("~idnode.log-made")
	keySnapshot = []byte("~idnode.newest-snapshot")
)

// Watchdog is what happens when the store can no longer be trusted.
type Watchdog struct {
	// Limit is how long one write may take. It is above zero.
	Limit time.Duration
	// Slow is how long a write for which Raft waits may be in flight before it is slow.
	Slow time.Duration
	// Slowed, if set, is called with true when a write is slow, and with false when that
	// write has ended. It must be quick.
	Slowed func(slow bool)
	// Fatal is called once, with the first error after which every call fails. It must
	// cause the process to end, and may be called from any goroutine, even while Open
	// runs. It is required.
	Fatal func(error)
}

// Config is what Open needs.
type Config struct {
	// Dir is the directory of raft.db, log/ and snapshots/; it is made if missing.
	Dir string
	// NodeID is the Raft id of this node. It is recorded in a new file, and
	// must be the recorded one in an existing file.
	NodeID string
	// MustExist is set for a node that has been part of a cluster: a missing file then is
	// ErrMissing. Without it, a node whose log was deleted would return under its old id
	// without its votes and entries.
	MustExist bool
	Watchdog  Watchdog
	// Logger is required.
	Logger *slog.Logger
	// Wrote, if set, is called after each write that succeeded, fsync included.
	// It must be quick.
	Wrote func(took time.Duration)

	// cacheEntries is for tests; zero means the constant.
	cacheEntries int
	// noSync leaves out fsync, for tests that write thousands of times.
	noSync bool
	// segmentBytes is the size of the log's segments; zero means wal's own.
	segmentBytes int64
	// disk, if set, has the log in place of its folder, for tests that inject faults.
	disk wal.Disk
}

// Store is a raft.LogStore and a raft.StableStore, and has the node's snapshots. It is
// safe for concurrent use. It ends the node at the first failure of any of its files; the
// log alone, a wal.Log, does not know the others.
type Store struct {
	cfg   Config
	guard *guard
	log   *wal.Log
	// mark is beside the log's folder: the log's own mark is inside, and does not detect an
	// older copy of the whole folder.
	mark   *boltfile.Mark
	stable *stableStore
	// cache has the newest entries, and is above the log.
	cache     *raft.LogCache
	snapshots *Snapshots
}

// Open opens or creates the store and reads all of it once. It returns ErrInUse,
// ErrForeign, ErrMissing or ErrCorrupt, wrapped, and may have called Fatal; a
// node that cannot open its store ends either way.
func Open(cfg Config) (*Store, error) {
	cfg.cacheEntries = cmp.Or(cfg.cacheEntries, cacheEntries)
	if err := os.MkdirAll(cfg.Dir, dirMode); err != nil {
		return nil, err
	}
	guard := newGuard(cfg.Watchdog, cfg.Logger)
	guard.wrote = cfg.Wrote
	snapshots, err := openSnapshots(cfg, guard)
	if err != nil {
		return nil, err
	}
	// A new log beside existing snapshots means that the old log was lost.
	cfg.MustExist = cfg.MustExist || snapshots.end.Load() > 0
	stable, err := openStable(cfg, guard)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, guard: guard, stable: stable, snapshots: snapshots}
	if err = snapshots.checkAgainst(s); err == nil {
		err = s.openLog()
	}
	if err != nil {
		return nil, errors.Join(err, stable.backend.Close())
	}
	return s, nil
}

// Snapshots returns the node's snapshot store.
func (s *Store) Snapshots() raft.SnapshotStore { return s.snapshots }

// Close closes the files. It must be called only after Raft has been shut down
// completely. It does not wait for a hanging disk, in a write or in the log's background
// work: it reports that error, and the lock is released with the process.
func (s *Store) Close() error {
	if errors.Is(s.guard.err(), ErrStalled) {
		return s.guard.err()
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(s.closeLog(), s.stable.backend.Close()) }()
	select {
	case err := <-done:
		return err
	case <-time.After(s.guard.watchdog.Limit + closeExtra):
		return fmt.Errorf("%w: closing the store", ErrStalled)
	}
}

// Set implements raft.StableStore. When it returns nil the value is on disk, except for
// the term of a vote, which is written with the candidate.
func (s *Store) Set(key, value []byte) error { return s.stable.Set(key, value) }

func (s *Store) Get(key []byte) ([]byte, error) { return s.stable.Get(key) }

func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.stable.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// Revision returns the newest recorded revision of the node's record, 0 if there is none.
func (s *Store) Revision() (uint64, error) { return s.number(keyRevision) }

// SetRevision records a revision of the node's record that is on disk.
func (s *Store) SetRevision(revision uint64) error { return s.SetUint64(keyRevision, revision) }

func (s *Store) number(key []byte) (uint64, error) {
	n, err := s.GetUint64(key)
	if errors.Is(err, errNoKey) {
		return 0, nil
	}
	return n, err
}

func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.stable.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, s.guard.fail(fmt.Errorf("%w: stable value %q has %d bytes", ErrCorrupt, key, len(value)))
	}
	return binary.BigEndian.Uint64(value), nil
}
