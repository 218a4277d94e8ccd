package simulation

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
)

// sectorBytes is what a disk writes as a whole or not at all.
const sectorBytes = 512

// files are the files of a log, as a file system keeps them: names, and contents
// that have numbers. What a name leads to is durable when the folder was synced,
// and contents when the file was.
type files struct {
	names    map[string]uint64
	contents map[uint64][]byte
}

func newFiles() files { return files{map[string]uint64{}, map[uint64][]byte{}} }

// clone copies what has a name.
func (f files) clone() files {
	c := files{maps.Clone(f.names), map[uint64][]byte{}}
	for _, number := range f.names {
		c.contents[number] = bytes.Clone(f.contents[number])
	}
	return c
}

// write changes contents.
func (f files) write(number uint64, data []byte, at int64) {
	content := f.contents[number]
	if missing := at + int64(len(data)) - int64(len(content)); missing > 0 {
		content = append(content, make([]byte, missing)...)
	}
	copy(content[at:], data)
	f.contents[number] = content
}

// folder is a session's files as a wal.Disk.
type folder struct{ *session }

var _ wal.Disk = folder{}

// Names implements wal.Disk.
func (d folder) Names() (names []string, err error) {
	err = d.read(func(i *image) error {
		names = slices.Sorted(maps.Keys(i.files.names))
		return nil
	})
	return names, err
}

// Open implements wal.Disk.
func (d folder) Open(name string) (f wal.File, err error) {
	err = d.read(func(i *image) error {
		number, ok := i.files.names[name]
		if !ok {
			return fs.ErrNotExist
		}
		f = walFile{d.session, number}
		return nil
	})
	return f, err
}

// Create implements wal.Disk.
func (d folder) Create(name string) (wal.File, error) {
	err := d.read(func(i *image) error {
		if _, ok := i.files.names[name]; ok {
			return fs.ErrExist
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	number := d.newFile()
	return walFile{d.session, number}, d.rename(func(i *image) { i.files.names[name] = number })
}

// newFile returns a number that no file had.
func (s *session) newFile() uint64 {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.made++
	return s.disk.made
}

// rename changes names without syncing.
func (d folder) rename(change write) error {
	return d.put(&batch{writes: []write{change}, scattered: true})
}

// Rename implements wal.Disk.
func (d folder) Rename(from, to string) error {
	return d.rename(func(i *image) {
		if number, ok := i.files.names[from]; ok {
			i.files.names[to] = number
			delete(i.files.names, from)
		}
	})
}

// Remove implements wal.Disk.
func (d folder) Remove(name string) error {
	return d.rename(func(i *image) { delete(i.files.names, name) })
}

// Sync implements wal.Disk.
func (d folder) Sync() error { return d.syncFile(0) }

// syncFile makes durable what was written to a file; 0 is the names.
func (s *session) syncFile(number uint64) error {
	all := &batch{file: number, scattered: true}
	s.disk.mu.Lock()
	for _, b := range s.unsynced {
		if b.scattered && b.file == number {
			all.writes = append(all.writes, b.writes...)
		}
	}
	s.unsynced = slices.DeleteFunc(s.unsynced, func(b *batch) bool { return b.scattered && b.file == number })
	s.unsynced = append(s.unsynced, all)
	s.disk.mu.Unlock()
	return s.syncUnwatched(all)
}

// walFile is one file of a session.
type walFile struct {
	session *session
	number  uint64
}

// ReadAt implements io.ReaderAt.
func (f walFile) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.session.read(func(i *image) error {
		content := i.files.contents[f.number]
		n = copy(p, content[min(at, int64(len(content))):])
		if n < len(p) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// WriteAt implements io.WriterAt. After a crash any of the sectors may be there.
func (f walFile) WriteAt(p []byte, at int64) (int, error) {
	b := &batch{file: f.number, scattered: true}
	for rest, from := bytes.Clone(p), at; len(rest) > 0; {
		n := min(int64(len(rest)), sectorBytes-from%sectorBytes)
		sector, place := rest[:n], from
		b.writes = append(b.writes, func(i *image) { i.files.write(f.number, sector, place) })
		rest, from = rest[n:], from+n
	}
	if err := f.session.put(b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Size implements wal.File.
func (f walFile) Size() (size int64, err error) {
	err = f.session.read(func(i *image) error {
		size = int64(len(i.files.contents[f.number]))
		return nil
	})
	return size, err
}

// Sync implements wal.File.
func (f walFile) Sync() error {
	f.session.disk.countSync()
	return f.session.syncFile(f.number)
}

// Close implements io.Closer.
func (f walFile) Close() error { return nil }

// walStore is a session as a cluster.Store whose log is this repository's own.
type walStore struct {
	raftStore
	log *wal.Log
}

// openWAL opens the log, and makes it first if the disk has none.
func (s storage) openWAL(exists bool, owner string) (*walStore, error) {
	cfg := wal.Config{Disk: folder{s.session}, SegmentBytes: s.plan.segmentBytes, Owner: []byte(owner), Write: s.guarded}
	if !exists {
		if err := wal.Create(cfg); err != nil {
			return nil, err
		}
	}
	log, err := wal.Open(cfg)
	return &walStore{raftStore{s.session}, log}, err
}

// guarded runs a change of the log: after an error nothing may go on. As in the store, the
// time of the whole change counts, which is that of several syncs if it begins a segment.
func (s *session) guarded(_ string, change func() error) error {
	watchdog := s.watch()
	err := change()
	watchdog()
	if errors.Is(err, errIO) {
		s.broke()
	}
	return err
}

// FirstIndex implements raft.LogStore.
func (s *walStore) FirstIndex() (uint64, error) { return s.log.FirstIndex() }

// LastIndex implements raft.LogStore.
func (s *walStore) LastIndex() (uint64, error) { return s.log.LastIndex() }

// GetLog implements raft.LogStore.
func (s *walStore) GetLog(index uint64, log *raft.Log) error {
	err := s.log.GetLog(index, log)
	if errors.Is(err, wal.ErrCorrupt) && !s.wasHurt() {
		s.lost(index)
	}
	if !errors.Is(err, raft.ErrLogNotFound) {
		s.survive(err)
	}
	return err
}

// StoreLog implements raft.LogStore.
func (s *walStore) StoreLog(log *raft.Log) error { return s.log.StoreLog(log) }

// StoreLogs implements raft.LogStore.
func (s *walStore) StoreLogs(logs []*raft.Log) error { return s.log.StoreLogs(logs) }

// DeleteRange implements raft.LogStore.
func (s *walStore) DeleteRange(first, last uint64) error { return s.log.DeleteRange(first, last) }

// Close implements cluster.Store.
func (s *walStore) Close() error { return s.log.Close() }
