package raftlog

import "github.com/idnode/idnode/internal/wire"

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

func SizeEntry(h Header, groups [][]byte) int {
	return wire.SizeVarint(entryFormat, uint64(h.Format)) +
		wire.SizeBytes(entryClusterID, h.ClusterID) +
		wire.SizeVarint(entryTime, uint64(h.TimeUnixNano)) +
		wire.SizeRepeated(entryGroups, groups)
}

func AppendGroup(dst []byte, g Group) []byte {
	dst = wire.AppendBytes(dst, groupOrigin, g.Origin)
	dst = wire.AppendVarint(dst, groupSession, g.Session)
	dst = wire.AppendVarint(dst, groupSequence, g.Sequence)
	dst = wire.AppendVarint(dst, groupAcknowledged, g.Acknowledged)
	return wire.AppendRepeated(dst, groupOperations, g.Operations)
}

func SizeGroup(g Group) int {
	return wire.SizeBytes(groupOrigin, g.Origin) +
		wire.SizeVarint(groupSession, g.Session) +
		wire.SizeVarint(groupSequence, g.Sequence) +
		wire.SizeVarint(groupAcknowledged, g.Acknowledged) +
		wire.SizeRepeated(groupOperations, g.Operations)
}
