// Package backup reads and writes backup files: the replicated state of a cluster at one log index.
//
// A file is a magic, and then frames, each a message of proto/raftlog/v1 after its length (a varint)
// and the CRC-32C of length and message (4 bytes, little endian): a BackupHeader, the SnapshotRecords
// of the state, a length of zero with its CRC-32C, and a BackupTrailer with the number of records and
// the SHA-256 of everything before that length. Nothing follows.
//
// It knows the file's format, not its content: package fsm interprets a record, and the
// command line uses it.
//
// Invariant: a Reader that returned io.EOF has read a complete file, bit for bit as it was written.
package backup

import "errors"

const (
	// Format is the newest format of the file that is read and written.
	Format = 1
	// magic begins every backup, of any format.
	magic = "idnode backup\n"
	// maxFrame is the largest message that is read, far above what is written.
	maxFrame = 256 << 20
	// buffered is how much is read and written at once.
	buffered = 64 << 10
)

// Errors that a Reader's methods wrap; test for them with errors.Is.
var (
	// ErrCorrupt means that the file is no backup, or is damaged, or cut short.
	ErrCorrupt = errors.New("the backup is damaged")
	// ErrNewer means that a newer release wrote it.
	ErrNewer = errors.New("the backup was written by a newer release")
)
