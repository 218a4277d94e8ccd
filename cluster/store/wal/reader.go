package wal

import (
	"bytes"
	"errors"
	"os"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/disklock"
)

// Reader reads a log that no process has open.
type Reader struct {
	log *Log
	// Segments counts the files, and Torn is how many bytes Open would cut off.
	Segments, Torn int
}

// OpenReader reads and checks the log in a folder as Open does, and changes nothing.
func OpenReader(dir string) (*Reader, error) {
	l := &Log{disk: readOnly{folder{path: dir}}, changing: disklock.New()}
	found, err := l.scan()
	if err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return &Reader{l, len(l.segments), len(bytes.TrimRight(found.newest[l.end:], "\x00"))}, nil
}

// Range, GetLog and Position are those of Log.
func (r *Reader) Range() (first, last uint64) { return r.log.Range() }

// GetLog reads an entry as Log does.
func (r *Reader) GetLog(index uint64, log *raft.Log) error { return r.log.GetLog(index, log) }

// Position is that of Log.
func (r *Reader) Position() uint64 { return r.log.Position() }

// Close closes the files.
func (r *Reader) Close() error { return r.log.closeFiles() }

type readOnly struct{ folder }

// Open implements Disk.
func (d readOnly) Open(name string) (File, error) {
	f, err := os.Open(d.at(name))
	return diskFile{f, true}, err
}
