package raftlog

import (
	"errors"
	"fmt"

	"github.com/idnode/idnode/internal/wire"
)

// FormatVersion is the newest log format this package reads and writes. The next is 4: programs before the
// first release wrote other formats as 2 and 3.
const FormatVersion = 1

// Bounds on what is decoded. They are far above what a leader puts into one entry; they
// exist so that a few megabytes of hostile input cannot make the decoder allocate many
// times their size. Builders of entries keep within them (CheckGroup counts), because an
// entry beyond them is corrupt to every node.
const (
	// MaxEntryBytes is the largest entry that is decoded.
	MaxEntryBytes = 64 << 20
	// MaxGroups is the largest number of groups in an entry.
	MaxGroups = 1 << 12
	// MaxOperations is the largest number of operations in an entry, over all
	// its groups, and so also in one group.
	MaxOperations = 1 << 17
	// MaxResultBytes is the most that the results of the operations have that a node puts
	// into one group, and those of any single operation: fsm/op.ResultBound.
	MaxResultBytes = 2 << 20
	// MaxMessageBytes is the largest message between nodes. It is above the results of a
	// group, and above the largest list of members.
	MaxMessageBytes = 128 << 20
	// MaxOriginBytes is the largest origin of a group; Raft ids have 16 bytes.
	MaxOriginBytes = 64
	// MaxClusterIDBytes is the largest cluster id; ours have 16 bytes.
	MaxClusterIDBytes = 64
)

// ErrCorrupt is what every decoder returns, wrapped, for bytes that this
// package did not write.
var ErrCorrupt = errors.New("raftlog: corrupt")

// UnknownFormatError means that data has a newer format than this binary knows. The node
// must stop: skipping would make its state differ.
type UnknownFormatError struct {
	// What was read: "log entry", "snapshot" and the like.
	What string
	// Format is the format it is written in.
	Format uint32
	// Known is the newest format that this binary, or its configuration, knows.
	Known uint32
}

func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this binary knows formats up to %d: upgrade it", e.What, e.Format, e.Known)
}

// Header is what the leader writes into an entry.
//
// Invariant: no rule of the state depends on a header being at least as new as those of
// the entries before it. Raft may take an entry that was built in an earlier leadership
// of its node, behind entries of leaders in between.
type Header struct {
	// Format is the format the entry is written in, from 1. It says only who can read the
	// entry; by which rules it is applied is decided by the state's own format.
	Format uint32
	// ClusterID is the cluster the entry belongs to, 16 bytes; empty only
	// before the cluster is formed.
	ClusterID []byte
	// TimeUnixNano is the leader's clock when it proposed the entry, in
	// nanoseconds since 1970 UTC. It may go back from one entry to the next.
	TimeUnixNano int64
}

// Group is what one node gathered from its callers. It counts at most once,
// unless its origin is empty: then it counts each time it is in the log.
type Group struct {
	// Origin is the Raft id of the node that gathered it, 16 bytes, or empty.
	Origin []byte
	// Session is the log index of the origin's newest announcement.
	Session uint64
	// Sequence is the group's number within the session, from 1.
	Sequence uint64
	// Acknowledged is the highest sequence number up to which the origin has
	// the results of all groups.
	Acknowledged uint64
	// Operations are the encoded operations, in order.
	Operations [][]byte
}

// Entry is one decoded entry. Its byte slices are views into the input, which
// must not change while the Entry is in use.
type Entry struct {
	Header
	// Groups are applied in order.
	Groups []Group
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// Field numbers of raftlog.v1.Entry and raftlog.v1.Group.
const (
	entryFormat    wire.Number = 1
	entryClusterID wire.Number = 2
	entryTime      wire.Number = 3
	entryGroups    wire.Number = 4

	groupOrigin       wire.Number = 1
	groupSession      wire.Number = 2
	groupSequence     wire.Number = 3
	groupAcknowledged wire.Number = 4
	groupOperations   wire.Number = 5
)

// AppendEntry appends the encoding of an entry to dst and returns the result. groups are
// encoded Groups; they are copied unchanged, so the caller checks received ones with
// CheckGroup first.
func AppendEntry(dst []byte, h Header, groups [][]byte) []byte {
	dst = wire.AppendVarint(dst, entryFormat, uint64(h.Format))
	dst = wire.AppendBytes(dst, entryClusterID, h.ClusterID)
	dst = wire.AppendVarint(dst, entryTime, uint64(h.TimeUnixNano))
	return wire.AppendRepeated(dst, entryGroups, groups)
}

// SizeEntry returns the number of bytes that AppendEntry appends.
func SizeEntry(h Header, groups [][]byte) int {
	return wire.SizeVarint(entryFormat, uint64(h.Format)) +
		wire.SizeBytes(entryClusterID, h.ClusterID) +
		wire.SizeVarint(entryTime, uint64(h.TimeUnixNano)) +
		wire.SizeRepeated(entryGroups, groups)
}

// AppendGroup appends the encoding of g to dst and returns the result.
func AppendGroup(dst []byte, g Group) []byte {
	dst = wire.AppendBytes(dst, groupOrigin, g.Origin)
	dst = wire.AppendVarint(dst, groupSession, g.Session)
	dst = wire.AppendVarint(dst, groupSequence, g.Sequence)
	dst = wire.AppendVarint(dst, groupAcknowledged, g.Acknowledged)
	return wire.AppendRepeated(dst, groupOperations, g.Operations)
}

// SizeGroup returns the number of bytes that AppendGroup appends.
func SizeGroup(g Group) int {
	return wire.SizeBytes(groupOrigin, g.Origin) +
		wire.SizeVarint(groupSession, g.Session) +
		wire.SizeVarint(groupSequence, g.Sequence) +
		wire.SizeVarint(groupAcknowledged, g.Acknowledged) +
		wire.SizeRepeated(groupOperations, g.Operations)
}
