package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
	// lockTimeout bounds the wait for another process's file lock. It is only
	// there for a process that is about to end; bbolt's default is for ever.
	lockTimeout = time.Second
	// initialMap is the address space mapped at once, in bytes. The map is made
	// anew when the file outgrows it, and that waits for all readers.
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
	// keys are the stable keys found in it, each with a sound value.
	keys map[string]bool
}

// openFile inspects an existing raft.db and opens it; a missing one is made first.
func openFile(cfg Config, guard *guard) (*file, error) {
	path := filepath.Join(cfg.Dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(cfg, guard, path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	keys, err := inspect(path)
	if err != nil {
		return nil, err
	}
	bolt, err := openBolt(path, cfg.noSync)
	if err != nil {
		return nil, err
	}
	return &file{backend: bolt, keys: keys}, nil
}

func openBolt(path string, noSync bool) (bolt *raftboltdb.BoltStore, err error) {
	err = trapped(func() error {
		bolt, err = raftboltdb.New(raftboltdb.Options{
			Path:   path,
			NoSync: noSync,
			BoltOptions: &bbolt.Options{
				Timeout: lockTimeout,
				// The list of free pages is found again by a scan at open,
				// instead of being written with every commit.
				NoFreelistSync:  true,
				FreelistType:    bbolt.FreelistMapType,
				InitialMmapSize: initialMap,
			},
		})
		return inUse(err)
	})
	return bolt, err
}

func inUse(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	return err
}

// createFile makes a raft.db with an empty log's tail record and its owner's id.
// It appears under its name only when it is whole: a crash while bbolt lays out
// a new file would otherwise leave one that can only be called damaged.
func createFile(cfg Config, guard *guard, path string) error {
	if cfg.MustExist {
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
	return syncDir(cfg.Dir)
}

func writeFirstRecords(cfg Config, guard *guard, path string) error {
	bolt, err := openBolt(path, cfg.noSync)
	if err != nil {
		return err
	}
	err = newSealedLog(bolt, guard).writeTail(0)
	if err == nil {
		err = newSealedStable(bolt, guard, nil).Set(keyNodeID, []byte(cfg.NodeID))
	}
	return errors.Join(err, bolt.Close())
}

// inspect looks at the whole structure of the file before anything writes to it,
// and returns the stable keys in it.
func inspect(path string) (keys map[string]bool, err error) {
	if err := checkMetas(path); err != nil {
		return nil, err
	}
	err = trapped(func() error {
		db, err := bbolt.Open(path, fileMode, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
		if err != nil {
			return inUse(err)
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) (err error) {
			keys, err = inspectTx(tx, path)
			return err
		})
	})
	return keys, err
}

func inspectTx(tx *bbolt.Tx, path string) (map[string]bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() < tx.Size() {
		return nil, fmt.Errorf("%w: %s is cut short, at %d of %d bytes", ErrCorrupt, fileName, info.Size(), tx.Size())
	}
	logs, conf := tx.Bucket(bucketLogs), tx.Bucket(bucketConf)
	if logs == nil || conf == nil {
		return nil, fmt.Errorf("%w: %s lacks a bucket", ErrCorrupt, fileName)
	}
	err = logs.ForEach(func(key, value []byte) error {
		if len(key) != 8 || value == nil {
			return fmt.Errorf("%w: a log entry's key %x", ErrCorrupt, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	err = conf.ForEach(func(key, sealed []byte) error {
		keys[string(key)] = true
		_, err := openValue(key, sealed)
		return err
	})
	return keys, err
}

// bbolt's meta page: a page header, then fixed fields in the machine's byte
// order, then an FNV-1a over those fields.
const (
	pageHeaderBytes = 16
	metaBytes       = 56
	metaPageSizeAt  = 8
)

// checkMetas demands that both of bbolt's meta pages are sound. bbolt writes
// them in turn and takes the newest that is; so a bit that flips in the newest
// one silently takes back the last transaction, which may hold a vote or an
// acknowledged entry. A torn write is no excuse for a damaged one: the 80 bytes
// that matter lie within one sector.
func checkMetas(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	pageSize, err := checkMeta(f, 0)
	if err != nil {
		return err
	}
	_, err = checkMeta(f, int64(pageSize))
	return err
}

func checkMeta(f *os.File, offset int64) (pageSize uint32, err error) {
	page := make([]byte, pageHeaderBytes+metaBytes+8)
	if _, err := f.ReadAt(page, offset); err != nil {
		return 0, fmt.Errorf("%w: meta page at %d: %w", ErrCorrupt, offset, err)
	}
	meta := page[pageHeaderBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaBytes])
	if sum.Sum64() != binary.NativeEndian.Uint64(meta[metaBytes:]) {
		return 0, fmt.Errorf("%w: meta page at %d", ErrCorrupt, offset)
	}
	return binary.NativeEndian.Uint32(meta[metaPageSizeAt:]), nil
}

// syncDir makes changes of names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
