package wal

import (
	"io"
	"os"
	"path/filepath"

	"github.com/idnode/idnode/internal/syncdir"
)

// Disk is where a log lies: a folder of the file system, unless a test injects crashes
// and faults. Appends, the preparation of the next segment, the removal of old ones and
// reads use it concurrently; no two of them change the same name.
type Disk interface {
	Names() ([]string, error)
	Open(name string) (File, error)
	// Create makes a file that must not be there.
	Create(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes changes of names durable.
	Sync() error
}

// File is one open file of the log. ReadAt, WriteAt and Sync are called concurrently, but
// never two writes to the same bytes. Close may be called during a Sync.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Sync makes writes durable. It is never retried after an error.
	Sync() error
}

// Files and folders are for the node's user alone.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

type folder struct {
	path   string
	noSync bool
}

func (d folder) at(name string) string { return filepath.Join(d.path, name) }

func (d folder) Names() (names []string, err error) {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d folder) Open(name string) (File, error) {
	f, err := os.OpenFile(d.at(name), os.O_RDWR, 0)
	return diskFile{f, d.noSync}, err
}

func (d folder) Create(name string) (File, error) {
	f, err := os.OpenFile(d.at(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	return diskFile{f, d.noSync}, err
}

func (d folder) Rename(from, to string) error { return os.Rename(d.at(from), d.at(to)) }

func (d folder) Remove(name string) error { return os.Remove(d.at(name)) }

func (d folder) Sync() error {
	if d.noSync {
		return nil
	}
	return syncdir.Sync(d.path)
}

type diskFile struct {
	*os.File
	noSync bool
}

func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f diskFile) Sync() error {
	if f.noSync {
		return nil
	}
	return datasync(f.File)
}
