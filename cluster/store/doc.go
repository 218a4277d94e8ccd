// Package store keeps a Raft node's log, its term and vote, and its snapshots, all below
// one directory.
//
// It owns the files raft.db (stable store and, unless it is a LogWAL, the log, in
// raft-boltdb), log/ (the log of a LogWAL, see package wal) and snapshots/ (the
// library's file snapshots), and these promises about them:
//
//   - Damaged data is never returned. Log entries and stable values carry a CRC-32C that
//     is checked at every read from the file; Open reads the whole file once, and knows
//     from a tail record how long the log must be, from the newest snapshot where it must
//     begin, and from both copies of bbolt's meta page that it did not fall back to an
//     older state. A LogWAL has other means for the same.
//   - After the first damage, failed write or stalled write the store fails every call,
//     and has called Config.Fatal, which must end the process. So a node cannot send,
//     vote or apply afterwards, even if the stalled write completes.
//   - A directory belongs to one node id, and to one kind of log, permanently.
//
// The library continues in all three cases: it falls back to an older snapshot, it stays
// leader while its disk hangs (hashicorp/raft issues 503 and 666), and it answers a
// failed read with a refusal.
//
// The package does not know what the entries mean, does not decide when to
// snapshot or compact, and does not end the process itself.
package store
