// Package boltfile says whether a bbolt file is what bbolt wrote, before bbolt
// trusts it.
//
// bbolt writes a transaction as a whole or not at all, and syncs it. But it
// follows the page numbers, sizes and offsets in a file without looking, on
// goroutines whose panics cannot be caught; and of its two meta pages it takes
// the newest that is sound, so that damage to one silently takes back the newest
// transaction. Check therefore demands both meta pages and walks the whole tree.
//
// A check of the file alone cannot tell that it was replaced by an older copy of
// itself. For that a Mark beside it remembers the newest transaction.
//
// A meta page of whose sync a process did not hear may be in memory only: Settle makes it
// durable before the next process relies on it.
//
// The package does not know what keys and values mean: its callers check them. It
// imports nothing of bbolt; the layout is that of bbolt's file format,
// version 2.
package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/idnode/idnode/internal/dirfile"
)

// ErrDamaged means that a file is not what was written.
var ErrDamaged = errors.New("the file is damaged")

var native = binary.NativeEndian

// The head of a page, and the fields of a meta page behind it.
const (
	headBytes = 16 // id uint64, flags uint16, count uint16, overflow uint32
	flagsAt   = 8
	countAt   = 10
	moreAt    = 12

	metaBytes  = 64
	metaMagic  = 0xED0CDAED
	metaPage   = 0x04
	versionAt  = 4
	version    = 2
	pageSizeAt = 8
	rootAt     = 16
	pagesAt    = 40
	txAt       = 48
	sumAt      = 56

	leastPageSize, mostPageSize = 512, 1 << 16
)

type meta struct {
	pageSize, root, pages, tx uint64
}

// Classify returns an error of the file system, or of a newer version, as it is, and any other
// as damage: wrapped in corrupt.
func Classify(err, corrupt error) error {
	var pathError *fs.PathError
	var errno syscall.Errno
	if err == nil || errors.As(err, &pathError) || errors.As(err, &errno) || errors.Is(err, dirfile.ErrOtherVersion) {
		return err
	}
	return fmt.Errorf("%w: %w", corrupt, err)
}

// Check reads the structure of the file at path, and returns the number of its
// newest transaction. There may be no writer at the same time. The error wraps
// ErrDamaged, or is the system's.
func Check(path string) (tx uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	m, err := newestMeta(f)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	// The division comes first, so that the product cannot overflow.
	if m.pages > uint64(info.Size())/m.pageSize {
		return 0, damaged("it is cut short, at %d bytes of %d pages", info.Size(), m.pages)
	}
	t := &tree{file: f, meta: m, seen: make(map[uint64]bool)}
	return m.tx, t.bucket(m.root)
}

// NewestTx returns the number of the newest transaction in an open file that
// has no writer at the moment.
func NewestTx(file io.ReaderAt) (uint64, error) {
	m, err := newestMeta(file)
	return m.tx, err
}

// Settle writes the newest meta page of the file at path once more, and syncs it. If its
// sync failed, that page is in memory only, where the next process reads it as if it were on
// disk; the first transaction would then replace the page of the one before, which is the
// last on disk. bbolt syncs a transaction's other pages before it writes that one. There may
// be no writer at the same time.
func Settle(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(settle(f), f.Close())
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

func settle(f file) error {
	m, err := newestMeta(f)
	if err != nil {
		return err
	}
	page, at := make([]byte, m.pageSize), int64(m.tx%2*m.pageSize)
	if _, err := f.ReadAt(page, at); err != nil {
		return err
	}
	if _, err := f.WriteAt(page, at); err != nil {
		return err
	}
	return f.Sync()
}

// newestMeta reads both meta pages, and demands that both are sound and belong to
// two transactions in a row: bbolt writes them in turn. A torn write is no excuse
// for a damaged one, since the 80 bytes that matter lie within one sector.
func newestMeta(file io.ReaderAt) (meta, error) {
	first, err := readMeta(file, 0, 0)
	if err != nil {
		return meta{}, err
	}
	second, err := readMeta(file, 1, int64(first.pageSize))
	if err != nil {
		return meta{}, err
	}
	if first.pageSize != second.pageSize || first.tx+1 != second.tx && second.tx+1 != first.tx {
		return meta{}, damaged("its meta pages, of the transactions %d and %d, do not belong together", first.tx, second.tx)
	}
	if second.tx > first.tx {
		return second, nil
	}
	return first, nil
}

func readMeta(file io.ReaderAt, id uint64, offset int64) (meta, error) {
	b := make([]byte, headBytes+metaBytes)
	if n, err := file.ReadAt(b, offset); n < len(b) {
		return meta{}, unread(fmt.Sprint("meta page ", id), err)
	}
	body := b[headBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(body[:sumAt])
	m := meta{
		pageSize: uint64(native.Uint32(body[pageSizeAt:])), root: native.Uint64(body[rootAt:]),
		pages: native.Uint64(body[pagesAt:]), tx: native.Uint64(body[txAt:]),
	}
	switch {
	case native.Uint64(b) != id, native.Uint16(b[flagsAt:]) != metaPage, m.tx%2 != id:
		return meta{}, damaged("page %d is not its meta page", id)
	case native.Uint32(body) != metaMagic, native.Uint32(body[versionAt:]) != version,
		sum.Sum64() != native.Uint64(body[sumAt:]):
		return meta{}, damaged("meta page %d", id)
	case m.pageSize < leastPageSize || m.pageSize > mostPageSize:
		return meta{}, damaged("pages of %d bytes", m.pageSize)
	}
	return m, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// unread says that a file which ends too early is damaged. Any other error is the
// system's: what the disk has was not seen.
func unread(what string, err error) error {
	if errors.Is(err, io.EOF) {
		return damaged("%s: %v", what, err)
	}
	return fmt.Errorf("reading %s: %w", what, err)
}

// Trap runs a function that uses the bbolt file at path, and returns a panic of it as
// damage, wrapped in corrupt. bbolt panics when it meets a page that makes no sense.
//
// bbolt reads through a memory map. There it is a fault if the file was cut short, and
// if the disk cannot be read, which is no damage; reading the file tells them apart.
func Trap(path string, corrupt error, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = fmt.Errorf("%w: %v", corrupt, p)
		if _, fault := p.(interface{ Addr() uintptr }); !fault {
			return
		}
		if unreadable := readThrough(path); unreadable != nil {
			err = unreadable
		}
	}()
	return do()
}

func readThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}
