//go:build !wasip1

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
)

const (
	raftFile = "raft.db"
	// witnessFile is the name of what is known of all members' disks.
	witnessFile = "witness.json"
)

func (c Config) withFiles() Config {
	dir := c.DataDir
	c.Storage = &files{dir: dir}
	if c.Room == nil {
		c.Room = func() (disk.Room, error) { return disk.RoomOf(dir) }
	}
	return c
}

// files is the Storage in a data directory. The record and Raft's store are separate
// files. The store keeps the record's newest revision, so that an older copy of the
// record is noticed.
type files struct {
	dir string
	// revision is the record's newest; store keeps it too, and is nil until it is open.
	revision uint64
	store    *store.Store
}

func (f *files) LoadRecord() (*member.Record, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	record, err := member.LoadOrCreate(f.dir, raftFile)
	if err == nil {
		f.revision = record.Revision
	}
	return record, err
}

// SaveRecord implements Storage. The store gets a revision once it is on disk.
func (f *files) SaveRecord(record *member.Record) error {
	next := *record
	next.Revision = f.revision + 1
	if err := next.Save(f.dir); err != nil {
		return err
	}
	f.revision = next.Revision
	if f.store == nil {
		return nil
	}
	return f.store.SetRevision(next.Revision)
}

func (f *files) OpenStore(o StoreOptions) (Store, error) {
	s, err := store.Open(store.Config{
		Dir: f.dir, NodeID: o.NodeID, MustExist: o.MustExist, Logger: o.Logger, Wrote: o.Wrote,
		Watchdog: store.Watchdog{Limit: o.StallLimit, Slow: o.SlowLimit, Slowed: o.Slowed, Fatal: o.Fatal},
	})
	if err != nil {
		return nil, err
	}
	if err := f.compareRevision(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	f.store = s
	return s, nil
}

func (f *files) LoadWitness() ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, witnessFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// SaveWitness implements Storage. It does not wait for the disk. The draft of the next one stays, so
// that it needs no inode.
func (f *files) SaveWitness(data []byte) error {
	path := filepath.Join(f.dir, witnessFile)
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	_ = os.WriteFile(path+".tmp", nil, 0o600)
	return nil
}

func (f *files) compareRevision(s *store.Store) error {
	known, err := s.Revision()
	switch {
	case err != nil:
		return err
	case f.revision < known:
		return fmt.Errorf("%w: it is an older copy, of revision %d, and revision %d was written", member.ErrCorrupt, f.revision, known)
	case f.revision == known:
		return nil
	}
	return s.SetRevision(f.revision)
}
