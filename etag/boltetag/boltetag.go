// Package boltetag keeps the etag counters of a node in a bbolt file.
//
// bbolt writes a transaction atomically, and syncs it; it does not detect damage in the
// values. So every value has a CRC-32C over its key and content, the number of databases
// is stored beside them, and the file names its node.
//
// bbolt has two meta pages, written in turn, and when the newer one is damaged it
// silently continues from the older one, which would bring back counters from before the
// newest reservation. So both must be sound when the file is opened. A reservation is
// also followed by a second, empty transaction: once it is acknowledged, both meta pages
// lead to it. And a mark beside the file records its newest transaction, so that an older
// copy of the file is detected.
//
// A file is made under another name and renamed when it is complete. A file
// that exists and holds nothing is damage, never a new start at zero.
package boltetag

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/boltfile"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/internal/syncdir"
)

const (
	fileMode = 0o600
	// lockTimeout bounds the wait for the file's lock, so that a second process
	// on the same directory ends instead of hanging.
	lockTimeout = time.Second
)

var (
	ErrOtherNode = errors.New("boltetag: the file belongs to another node")
	ErrInUse     = errors.New("boltetag: the file is in use by another process")
	// ErrMissing means that the file should exist, and does not.
	ErrMissing = errors.New("boltetag: the file is missing")
)

// Options sets a store up.
type Options struct {
	// NodeID is the Raft id of the node, as raw bytes; never empty. It is
	// recorded in a new file, and must be the one in an old file.
	NodeID []byte
	// MustExist is set for a node that may have used the file before: without it
	// the counters would begin at zero again, and if no cluster answered at that
	// start, nothing would raise them.
	MustExist bool
}

// Store is an etag.Store in one bbolt file.
type Store struct {
	db   *bolt.DB
	node []byte
	mark *boltfile.Mark
}

// Open opens the file at path, or creates it; its folder must exist. It reads and checks
// the whole file. It returns ErrInUse, ErrOtherNode, ErrMissing, an error that
// wraps etag.ErrCorrupt, or the file system's error.
func Open(path string, opts Options) (*Store, error) {
	node := bytes.Clone(opts.NodeID)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if opts.MustExist || boltfile.HasMark(path) {
			return nil, fmt.Errorf("%w: %s", ErrMissing, path)
		}
		if err := create(path, node); err != nil {
			return nil, fmt.Errorf("boltetag: make %s: %w", path, err)
		}
	}
	// bbolt trusts its pages when it opens a file for writing, and can end the
	// process over a damaged one. So the file is read through first, where
	// every such failure is caught.
	mark, err := verify(path, node)
	if err != nil {
		return nil, fmt.Errorf("boltetag: %s: %w", path, err)
	}
	db, err := openBolt(path, false)
	if err != nil {
		return nil, fmt.Errorf("boltetag: %s: %w", path, errors.Join(err, mark.Close()))
	}
	return &Store{db: db, node: node, mark: mark}, nil
}

func create(path string, node []byte) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := openBolt(draft, false)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(func(tx *bolt.Tx) error { return initialise(tx, node) }), db.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return syncdir.Sync(filepath.Dir(path))
}

func verify(path string, node []byte) (mark *boltfile.Mark, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		// bbolt takes an empty file for a new one.
		return nil, fmt.Errorf("%w: the file is empty", etag.ErrCorrupt)
	}
	err = boltfile.Trap(path, etag.ErrCorrupt, func() error {
		// This takes the lock, without which another process could be writing,
		// and reads no more than the meta pages.
		db, err := openBolt(path, true)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		newest, err := boltfile.Check(path)
		if err != nil {
			return classify(err)
		}
		err = db.View(func(tx *bolt.Tx) error {
			_, err := read(tx, node)
			return err
		})
		if err == nil {
			err = classify(boltfile.Settle(path))
		}
		if err != nil {
			return err
		}
		mark, err = boltfile.OpenMark(path, node, newest)
		return classify(err)
	})
	return mark, err
}

func openBolt(path string, readOnly bool) (db *bolt.DB, err error) {
	err = boltfile.Trap(path, etag.ErrCorrupt, func() error {
		// The free list is not kept in the file, because a damaged one would
		// make bbolt write over live pages; it is rebuilt at each start.
		db, err = bolt.Open(path, fileMode, &bolt.Options{
			Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, ReadOnly: readOnly,
		})
		return classify(err)
	})
	return db, err
}

// classify tells a file in use, and an error of the file system, from damage.
func classify(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	return boltfile.Classify(err, etag.ErrCorrupt)
}

func (s *Store) Load() (state etag.Stored, err error) {
	err = boltfile.Trap(s.db.Path(), etag.ErrCorrupt, func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			state, err = read(tx, s.node)
			return err
		})
	})
	return state, err
}

func (s *Store) Reserve(r etag.Reservation) error {
	failpoint.Hit(failpoint.EtagBefore)
	defer failpoint.Hit(failpoint.EtagAfter)
	if err := s.update(func(tx *bolt.Tx) error { return reserve(tx, r) }); err != nil {
		return err
	}
	// The second meta page; see the package comment.
	return s.update(func(*bolt.Tx) error { return nil })
}

// Stop implements etag.Store. It needs no second transaction: the older meta
// page leads to the reservation before, which is higher and therefore safe.
func (s *Store) Stop(last map[string]uint64) error {
	return s.update(func(tx *bolt.Tx) error { return stop(tx, last) })
}

func (s *Store) update(f func(*bolt.Tx) error) error {
	newest := 0
	err := boltfile.Trap(s.db.Path(), etag.ErrCorrupt, func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			newest = tx.ID()
			return f(tx)
		})
	})
	if err != nil {
		return err
	}
	return s.mark.Put(uint64(newest))
}

func (s *Store) Close() error { return errors.Join(s.db.Close(), s.mark.Close()) }
