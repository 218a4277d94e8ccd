package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/dirfile"
	"github.com/idnode/idnode/internal/syncdir"
)

const markSuffix = ".mark"

const (
	markMagic = "idnmark\x01"
	// A mark is the magic, the transaction's number (8 bytes) and a CRC-32C (4).
	markBytes = len(markMagic) + 8 + 4
)

// Mark remembers, in a file of its own, the newest transaction of a bbolt file
// that was acknowledged. A file whose newest transaction is older has been
// replaced by an older copy of itself.
//
// It is written without a sync, after each transaction: it outlives a killed
// process, since the system has it, and costs next to nothing. A loss of power
// may set it back; it then demands less than it could, and never too much. It is
// synced when it is opened and when it is closed.
//
// It is safe for concurrent use.
type Mark struct {
	file  *os.File
	owner []byte

	mu sync.Mutex
	tx uint64
}

// OpenMark opens the mark of the file at path, whose newest transaction is tx,
// and makes one if there is none. owner is whose file it is: a mark of another
// owner is damage. The error wraps ErrDamaged, or dirfile.ErrOtherVersion for a newer program's mark, or is
// the system's.
func OpenMark(path string, owner []byte, tx uint64) (*Mark, error) {
	m := &Mark{owner: owner, tx: tx}
	name := path + markSuffix
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		content = m.encode()
		err = create(name, content)
	}
	if err != nil {
		return nil, err
	}
	if err := m.check(content, tx); err != nil {
		return nil, err
	}
	if m.file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	if err := errors.Join(m.write(), m.file.Sync()); err != nil {
		return nil, errors.Join(err, m.file.Close())
	}
	return m, nil
}

// CheckMark compares the mark of the file at path, if it has one, with the file's newest
// transaction, as OpenMark does, and changes nothing.
func CheckMark(path string, owner []byte, tx uint64) error {
	content, err := os.ReadFile(path + markSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return (&Mark{owner: owner}).check(content, tx)
}

// check fails if a file with this newest transaction is behind the mark.
func (m *Mark) check(content []byte, tx uint64) error {
	marked, err := m.decode(content)
	if err == nil && marked > tx {
		err = damaged("an older copy: its newest transaction is %d, and %d was written", tx, marked)
	}
	return err
}

// HasMark says whether the file at path has, or had, a mark. A file that is missing
// beside its mark was lost.
func HasMark(path string) bool {
	_, err := os.Stat(path + markSuffix)
	return err == nil
}

// Put moves the mark up to a transaction that is on disk.
func (m *Mark) Put(tx uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if tx <= m.tx {
		return nil
	}
	m.tx = tx
	return m.write()
}

// Close syncs and closes the mark.
func (m *Mark) Close() error {
	return errors.Join(m.file.Sync(), m.file.Close())
}

func (m *Mark) write() error {
	_, err := m.file.WriteAt(m.encode(), 0)
	return err
}

func (m *Mark) encode() []byte {
	b := append(make([]byte, 0, markBytes), markMagic...)
	b = binary.BigEndian.AppendUint64(b, m.tx)
	return binary.BigEndian.AppendUint32(b, m.sum(b))
}

func (m *Mark) decode(b []byte) (tx uint64, err error) {
	n := len(markMagic)
	intact := len(b) == markBytes &&
		m.sum(append([]byte(markMagic), b[n:markBytes-4]...)) == binary.BigEndian.Uint32(b[markBytes-4:])
	if err := dirfile.Magic(b, markMagic, intact, damaged("its mark")); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[n:]), nil
}

func (m *Mark) sum(b []byte) uint32 { return crc32c.Sum(m.owner, b) }

// create makes a file that has its name only when it is whole and on disk.
func create(name string, content []byte) error {
	draft := name + ".new"
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft, name); err != nil {
		return err
	}
	if err := syncdir.Sync(filepath.Dir(name)); err != nil {
		return fmt.Errorf("a new name in %s: %w", filepath.Dir(name), err)
	}
	return nil
}
