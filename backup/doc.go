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
