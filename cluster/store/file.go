package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/idnode/idnode/internal/boltfile"
	"github.com/idnode/idnode/internal/syncdir"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
	// lockTimeout bounds the wait for another process's file lock. It covers a process
	// that is about to end; bbolt's default is no limit.
	lockTimeout = time.Second
	// initialMap is the address space mapped at once, in bytes. When the file outgrows
	// the map, it is made again, which waits for all readers.
	initialMap = 256 << 20
)

// Buckets of raft-boltdb.
var (
	bucketLogs = []byte("logs")
	bucketConf = []byte("conf")
)

// file is an opened raft.db.
type file struct {
	backend
	// keys are the stable keys found in it, each with a valid value.
	keys map[string]bool
}

// openFile inspects and opens raft.db; it creates a missing one.
func openFile(cfg Config, guard *guard) (*file, error) {
	path := filepath.Join(cfg.Dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(cfg, guard, path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	keys, mark, err := inspect(path, cfg.NodeID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileName, err)
	}
	marked, err := openMarked(path, cfg.noSync, mark)
	if err != nil {
		return nil, errors.Join(err, mark.Close())
	}
	return &file{backend: marked, keys: keys}, nil
}

// boltStore is raft-boltdb's store, with transactions of several values.
type boltStore struct {
	*raftboltdb.BoltStore
	db *bbolt.DB
}

// SetAll implements stableBackend.
func (b boltStore) SetAll(pairs []pair) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		for _, p := range pairs {
			if err := tx.Bucket(bucketConf).Put(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
}

func openBolt(path string, noSync bool) (boltStore, error) {
	return newBolt(raftboltdb.Options{
		Path:   path,
		NoSync: noSync,
		BoltOptions: &bbolt.Options{
			Timeout: lockTimeout,
			// A scan at open rebuilds the free list, instead of a write with every
			// commit.
			NoFreelistSync:  true,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: initialMap,
		},
	})
}

func newBolt(options raftboltdb.Options) (b boltStore, err error) {
	err = boltfile.Trap(options.Path, ErrCorrupt, func() error {
		b.BoltStore, err = raftboltdb.New(options)
		return classify(err)
	})
	if err != nil {
		return b, err
	}
	// raft-boltdb (v2.3.1) sets one value a transaction and keeps its database in a
	// private field, and a file cannot be opened twice. A LogBolt needs both on the same
	// file. A new version may break this; TestRaftBoltKeepsItsDatabaseInConn checks it.
	b.db = (*bbolt.DB)(reflect.ValueOf(b.BoltStore).Elem().FieldByName("conn").UnsafePointer())
	return b, nil
}

// classify distinguishes a file in use, and an error of the file system, from damage.
func classify(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	return boltfile.Classify(err, ErrCorrupt)
}

// createFile creates a raft.db with its owner's id, and with an empty log's tail record
// or the mark that the log is elsewhere. It gets its name only when it is complete: a
// crash while bbolt lays out a new file would otherwise leave one that counts as damaged.
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
	if err := writeFirstRecords(cfg, guard, draft.Name()); err != nil {
		return err
	}
	// A link, unlike a rename, never takes the place of an existing file.
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncdir.Sync(cfg.Dir)
}

func writeFirstRecords(cfg Config, guard *guard, path string) error {
	bolt, err := openBolt(path, cfg.noSync)
	if err != nil {
		return err
	}
	stable := newCheckedStable(bolt, guard, nil)
	if cfg.Log != LogBolt {
		err = stable.Set(keyLogKind, []byte(kindNew))
	} else {
		err = newCheckedLog(bolt, guard).writeTail(0)
	}
	if err == nil {
		err = stable.Set(keyNodeID, []byte(cfg.NodeID))
	}
	return errors.Join(err, bolt.Close())
}

// inspect checks the whole structure of the file before anything writes to it, and
// returns its stable keys and its mark.
func inspect(path, nodeID string) (keys map[string]bool, mark *boltfile.Mark, err error) {
	if err := notEmpty(path); err != nil {
		return nil, nil, err
	}
	err = boltfile.Trap(path, ErrCorrupt, func() error {
		// This takes the lock, without which another process could be writing.
		db, err := bbolt.Open(path, fileMode, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
		if err != nil {
			return classify(err)
		}
		defer db.Close()
		newest, err := boltfile.Check(path)
		if err != nil {
			return classify(err)
		}
		owner := ""
		err = db.View(func(tx *bbolt.Tx) (err error) {
			keys, err = inspectTx(tx)
			owner = ownerIn(tx)
			return err
		})
		if err != nil {
			return err
		}
		// Another node's file is reported as that, not as one that does not fit its mark.
		if owner != "" && owner != nodeID {
			return foreign(owner, nodeID)
		}
		mark, err = boltfile.OpenMark(path, []byte(nodeID), newest)
		return classify(err)
	})
	return keys, mark, err
}

// notEmpty reports an empty file as damaged: bbolt takes it for a new one.
func notEmpty(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%w: %s is empty", ErrCorrupt, fileName)
	}
	return err
}

func inspectTx(tx *bbolt.Tx) (map[string]bool, error) {
	logs, conf := tx.Bucket(bucketLogs), tx.Bucket(bucketConf)
	if logs == nil || conf == nil {
		return nil, fmt.Errorf("%w: %s lacks a bucket", ErrCorrupt, fileName)
	}
	err := logs.ForEach(func(key, value []byte) error {
		if len(key) != 8 || value == nil {
			return fmt.Errorf("%w: a log entry's key %x", ErrCorrupt, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	err = conf.ForEach(func(key, stored []byte) error {
		keys[string(key)] = true
		_, err := stripValueChecksum(key, stored)
		return err
	})
	return keys, err
}

// ownerIn returns the node id in the file, if it can be read.
func ownerIn(tx *bbolt.Tx) string {
	if conf := tx.Bucket(bucketConf); conf != nil {
		if id, err := stripValueChecksum(keyNodeID, conf.Get(keyNodeID)); err == nil {
			return string(id)
		}
	}
	return ""
}
