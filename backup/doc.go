// Package backup reads and writes backup files: the replicated state of a
// cluster at one log index.
//
// A file is a magic, and then frames, each a message of proto/raftlog/v1 after
// its length (a varint) and the CRC-32C of length and message (4 bytes, little
// endian): a BackupHeader, the SnapshotRecords of the state, a length of zero
// with its CRC-32C, and a BackupTrailer with the number of records and the
// SHA-256 of everything before that length. Nothing follows.
//
// It knows the file and nothing of what is in it: what a record means is for
// package fsm, and what is done with it for the command line.
//
// Invariant: a Reader that has said io.EOF has read a whole file of which no bit
// is different from what was written.
package backup
