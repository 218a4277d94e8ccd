// Package failpoint lets tests kill this program at a chosen place, give it a wrong
// clock, and change what no setting changes.
//
// A point is a place between two steps after which a crash leaves something
// behind that the next start must cope with:
//
//	failpoint.Hit(failpoint.LogBefore)
//	err := store(entries)
//	failpoint.Hit(failpoint.LogAfter)
//
// A program built without the build tag failpoint has none of this: Hit does
// nothing, Now is time.Now, Tuned is empty, and no variable of the environment changes
// that. Built with the tag, FAILPOINT names a point and the how-manieth hit of it kills
// the process, as in log-before:3, FAILPOINT_CLOCK a file that says by how much the clock
// is wrong, as in -1h, and FAILPOINT_TUNING is a Tuning as JSON.
package failpoint

import "time"

// Point is a place at which the program can be killed.
type Point string

// The points, in the order in which an operation meets them.
const (
	// TermBefore and TermAfter are around the write of a new term.
	TermBefore Point = "term-before"
	TermAfter  Point = "term-after"
	// VoteBefore and VoteAfter are around the write of a vote.
	VoteBefore Point = "vote-before"
	VoteAfter  Point = "vote-after"
	// LogBefore and LogAfter are around an append to the log, DeleteBefore and
	// DeleteAfter around a deletion from it.
	LogBefore    Point = "log-before"
	LogAfter     Point = "log-after"
	DeleteBefore Point = "delete-before"
	DeleteAfter  Point = "delete-after"
	// ApplyBefore and ApplyAfter are around an entry's way through the state
	// machine, AnswerBefore is when its results are here and no caller has one.
	ApplyBefore  Point = "apply-before"
	ApplyAfter   Point = "apply-after"
	AnswerBefore Point = "answer-before"
	// SnapshotBefore is when a snapshot is begun, SnapshotWritten when all of it is
	// written and it has no name yet, SnapshotAfter when it has one.
	SnapshotBefore  Point = "snapshot-before"
	SnapshotWritten Point = "snapshot-written"
	SnapshotAfter   Point = "snapshot-after"
	// RestoreBefore and RestoreAfter are around the reading of a snapshot, at a
	// start or from a leader.
	RestoreBefore Point = "restore-before"
	RestoreAfter  Point = "restore-after"
	// EtagBefore and EtagAfter are around the reservation of server-side ids.
	EtagBefore Point = "etag-before"
	EtagAfter  Point = "etag-after"
	// RecordBefore is when a new version of the node's own record is on disk
	// without its name, RecordAfter when it has it and the folder is not synced.
	RecordBefore Point = "record-before"
	RecordAfter  Point = "record-after"
)

// All are all points.
var All = []Point{
	TermBefore, TermAfter, VoteBefore, VoteAfter, LogBefore, LogAfter, DeleteBefore, DeleteAfter,
	ApplyBefore, ApplyAfter, AnswerBefore, SnapshotBefore, SnapshotWritten, SnapshotAfter,
	RestoreBefore, RestoreAfter, EtagBefore, EtagAfter, RecordBefore, RecordAfter,
}

// Tuning is what no setting changes, and tests do. A zero value leaves the node's own.
type Tuning struct {
	// Dial and DialPeer are where a node reaches others on their Raft and gRPC ports, by
	// tag.
	Dial, DialPeer map[string]string
	// SnapshotInterval, SnapshotThreshold, TrailingLogs and LeaderWait are those of
	// cluster.Config.
	SnapshotInterval                time.Duration
	SnapshotThreshold, TrailingLogs uint64
	LeaderWait                      time.Duration
	// EtagBlock is etag.Config's BlockSize, StartWait that of etags.Config.
	EtagBlock uint64
	StartWait time.Duration
	// CallerConnections bounds the connections of one caller.
	CallerConnections int
}
