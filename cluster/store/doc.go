// Package store keeps a Raft node's log, its term and vote, and its snapshots, all below
// one directory.
//
// It owns the files raft.db (the stable store, in raft-boltdb), log/ (the log, see package
// wal) and snapshots/ (the library's file snapshots), and these promises about them:
//
//   - Damaged data is never returned. Open reads the whole of raft.db and of the log once.
//     Stable values carry a CRC-32C, and both copies of bbolt's meta page must be there,
//     so that it did not fall back to an older state. The log must begin where the newest
//     snapshot ends, or below. Log entries are checked at every read from the file.
//   - A vote is one record: its term and its candidate are written together.
//   - After the first damage, failed write or stalled write the store fails every call,
//     and has called Config.Fatal, which must end the process. So a node cannot send,
//     vote or apply afterwards, even if the stalled write completes.
//   - A directory belongs to one node id permanently.
//
// The library continues in all three cases: it falls back to an older snapshot, it stays
// leader while its disk hangs (hashicorp/raft issues 503 and 666), and it answers a
// failed read with a refusal.
//
// The package does not know what the entries mean, does not decide when to
// snapshot or compact, and does not end the process itself.
package store
