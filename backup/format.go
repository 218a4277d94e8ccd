// Package backup reads and writes backup files: the replicated state of a cluster at one log index.
//
// A file is a magic, and then frames, each a message of proto/raftlog/v1 after its length (a varint)
// and the CRC-32C of length and message (4 bytes, little endian): a BackupHeader, the SnapshotRecords
// of the state, a length of zero with its CRC-32C, and a BackupTrailer with the number of records and
// the SHA-256 of everything before that length. Nothing follows.
//
// It interprets the file's format, not its content: records are package fsm's, and the command line
// reads them with it. Snapshots of package fsm are files of this form too, with a header of their own.
//
// Invariant: a Reader that returned io.EOF has read a complete file, bit for bit as it was written.
package backup

import (
	"errors"
	"fmt"
	"io"

	"github.com/idnode/idnode/internal/wire"
)

const (
	// Format is the newest format of the file that is read and written. Format 1 was of programs before the
	// first release, whose log formats mean others than those of the same numbers today.
	Format = 2
	// maxFrame is the largest message that is read, far above any that is written.
	maxFrame = 256 << 20
	// buffered is how much is read and written at once.
	buffered = 64 << 10
)

// Errors that a Reader's methods wrap; test for them with errors.Is.
var (
	// ErrCorrupt means that the file is no backup, or is damaged, or cut short.
	ErrCorrupt = errors.New("the backup is damaged")
	// ErrOlder means that a program before the first release wrote it, which can still be asked for it.
	ErrOlder = errors.New("the backup was written by a program before the first release: restore it there, 'idnode export all.csv' " +
		"there, and 'idnode import all.csv' here")
	// ErrNewer means that a newer release wrote it.
	ErrNewer = errors.New("the backup was written by a newer release")
)

// FileKind is a kind of file with records of the state.
type FileKind struct {
	// Name is the word for such a file. Each file begins with it, in any format version.
	Name string
	// Corrupt and Newer are wrapped by a Reader's errors: the file is damaged, or a newer release wrote it.
	Corrupt, Newer error
}

var backups = FileKind{Name: "backup", Corrupt: ErrCorrupt, Newer: ErrNewer}

func (k FileKind) magic() []byte { return []byte("idnode " + k.Name + "\n") }

func (k FileKind) corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", k.Corrupt, fmt.Sprintf(format, args...))
}

func (k FileKind) newer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", k.Newer, fmt.Sprintf(format, args...))
}

// foreign is the error for a file that begins as no file of this kind.
type foreign struct{ FileKind }

func (e foreign) Error() string { return "it is no " + e.Name + " of idnode" }

func (e foreign) Unwrap() error { return e.Corrupt }

// cutShort is the error for a file that ends too early, or the reader's own.
func (k FileKind) cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return k.corrupt("it ends too early")
	}
	if errors.Is(err, wire.ErrLength) {
		return k.corrupt("%v", err)
	}
	return err
}
