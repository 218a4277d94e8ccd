package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/idnode/idnode/internal/boltfile"
	"github.com/idnode/idnode/internal/disklock"
	"github.com/idnode/idnode/internal/syncdir"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
	// lockTimeout bounds the wait for another process's file lock. It covers a process
	// that is about to end; bbolt's default is no limit.
	lockTimeout = time.Second
)

// bucketConf is raft-boltdb's bucket of a stable store.
var bucketConf = []byte("conf")

// openStable inspects and opens raft.db; it creates a missing one.
func openStable(cfg Config, guard *guard) (*stableStore, error) {
	path := filepath.Join(cfg.Dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(cfg, guard, path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	found, mark, err := inspect(path, cfg.NodeID)
	if err != nil {
		return nil, err
	}
	marked, err := openMarked(path, cfg.noSync, mark)
	if err != nil {
		return nil, errors.Join(err, mark.Close())
	}
	newest, err := boltfile.NewestTx(marked.file)
	switch {
	case err != nil:
		return nil, errors.Join(classify(err), marked.Close())
	case newest != found.newest+1: // raft-boltdb makes one transaction when it opens the file.
		return nil, errors.Join(ErrInUse, marked.Close())
	}
	return newStableStore(marked, guard, found.values), nil
}

func openBolt(path string, noSync bool) (bolt *raftboltdb.BoltStore, err error) {
	err = boltfile.Trap(path, ErrCorrupt, func() error {
		bolt, err = raftboltdb.New(raftboltdb.Options{
			Path:   path,
			NoSync: noSync,
			BoltOptions: &bbolt.Options{
				Timeout: lockTimeout,
				// A scan at open rebuilds the free list, instead of a write with every
				// commit.
				NoFreelistSync: true,
				FreelistType:   bbolt.FreelistMapType,
			},
		})
		return classify(err)
	})
	return bolt, err
}

func classify(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	return boltfile.Classify(err, ErrCorrupt)
}

// createFile creates a raft.db with its owner's id. It gets its name only when it is
// complete: a crash while bbolt lays out a new file would otherwise leave one that counts
// as damaged.
func createFile(cfg Config, guard *guard, path string) error {
	if cfg.MustExist || boltfile.HasMark(path) {
		return fmt.Errorf("%w: %s", ErrMissing, path)
	}
	draft, err := os.CreateTemp(cfg.Dir, fileName+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	if err := draft.Close(); err != nil {
		return err
	}
	if err := writeOwner(cfg, guard, draft.Name()); err != nil {
		return err
	}
	// A link, unlike a rename, never takes the place of an existing file.
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncdir.Sync(cfg.Dir)
}

func writeOwner(cfg Config, guard *guard, path string) error {
	bolt, err := openBolt(path, cfg.noSync)
	if err != nil {
		return err
	}
	return errors.Join(newStableStore(bolt, guard, nil).Set(keyNodeID, []byte(cfg.NodeID)), bolt.Close())
}

// inspect checks the whole file before anything writes to it, and returns what it has and
// its mark.
func inspect(path, nodeID string) (found contents, mark *boltfile.Mark, err error) {
	err = readFile(path, func(c contents) error {
		// Another node's file is reported as that, not as one that does not fit its mark.
		if c.owner != nodeID {
			return fmt.Errorf("%w: %s is %s's, this node is %s", ErrForeign, fileName, c.owner, nodeID)
		}
		found = c
		if err := boltfile.Settle(path); err != nil {
			return classify(err)
		}
		mark, err = boltfile.OpenMark(path, []byte(nodeID), c.newest)
		return classify(err)
	})
	return found, mark, err
}

type contents struct {
	// values are without their checksums, which are right.
	values map[string][]byte
	owner  string
	newest uint64
}

// readFile checks the structure and the values of the file, and calls use while no other
// process can open it.
func readFile(path string, use func(contents) error) error {
	if err := notEmpty(path); err != nil {
		return err
	}
	return boltfile.Trap(path, ErrCorrupt, func() error {
		db, err := bbolt.Open(path, fileMode, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
		if err != nil {
			return fmt.Errorf("%s: %w", fileName, classify(err))
		}
		defer db.Close()
		var c contents
		if c.newest, err = boltfile.Check(path); err != nil {
			return fmt.Errorf("%s: %w", fileName, classify(err))
		}
		if err := db.View(c.read); err != nil {
			return fmt.Errorf("%s: %w", fileName, err)
		}
		return use(c)
	})
}

// notEmpty reports an empty file as damaged: bbolt takes it for a new one.
func notEmpty(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%w: %s is empty", ErrCorrupt, fileName)
	}
	return err
}

func (c *contents) read(tx *bbolt.Tx) error {
	conf := tx.Bucket(bucketConf)
	if conf == nil {
		return fmt.Errorf("%w: it has no values", ErrCorrupt)
	}
	c.values = map[string][]byte{}
	err := conf.ForEach(func(key, stored []byte) error {
		value, err := stripValueChecksum(key, bytes.Clone(stored))
		if err == nil && string(key) == keyVote && len(value) < termBytes {
			err = fmt.Errorf("%w: a vote without a term", ErrCorrupt)
		}
		c.values[string(key)] = value
		return err
	})
	c.owner = string(c.values[string(keyNodeID)])
	if err == nil && c.owner == "" {
		err = fmt.Errorf("%w: it does not say whose it is", ErrCorrupt)
	}
	return err
}

// markedBolt is a raft.db whose mark follows every transaction: an older copy of the
// file, without the newest votes, is detected at open.
type markedBolt struct {
	bolt *raftboltdb.BoltStore
	path string
	mark *boltfile.Mark
	file *os.File

	// writing is held during each write, so that the newest transaction in
	// the file is one that was acknowledged. bbolt writes one at a time anyway.
	writing disklock.Mutex
}

func openMarked(path string, noSync bool, mark *boltfile.Mark) (*markedBolt, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	bolt, err := openBolt(path, noSync)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &markedBolt{bolt: bolt, path: path, mark: mark, file: file, writing: disklock.New()}, nil
}

func (b *markedBolt) Set(key, value []byte) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := boltfile.Trap(b.path, ErrCorrupt, func() error { return b.bolt.Set(key, value) }); err != nil {
		return err
	}
	newest, err := boltfile.NewestTx(b.file)
	if err != nil {
		return err
	}
	return b.mark.Put(newest)
}

func (b *markedBolt) Close() error {
	return errors.Join(b.bolt.Close(), b.mark.Close(), b.file.Close())
}
