package raftlog

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers of raftlog.v1.Entry and raftlog.v1.Group.
const (
	entryFormat    protowire.Number = 1
	entryClusterID protowire.Number = 2
	entryTime      protowire.Number = 3
	entryGroups    protowire.Number = 4

	groupOrigin       protowire.Number = 1
	groupSession      protowire.Number = 2
	groupSequence     protowire.Number = 3
	groupAcknowledged protowire.Number = 4
	groupOperations   protowire.Number = 5
)

// AppendEntry appends the encoding of an entry to dst and returns the result. groups are
// encoded Groups; they are copied unchanged, so the caller checks received ones with
// CheckGroup first.
func AppendEntry(dst []byte, h Header, groups [][]byte) []byte {
	dst = appendVarint(dst, entryFormat, uint64(h.Format))
	dst = appendBytes(dst, entryClusterID, h.ClusterID)
	dst = appendVarint(dst, entryTime, uint64(h.TimeUnixNano))
	return appendRepeated(dst, entryGroups, groups)
}

// SizeEntry returns the number of bytes that AppendEntry appends.
func SizeEntry(h Header, groups [][]byte) int {
	return sizeVarint(entryFormat, uint64(h.Format)) +
		sizeBytes(entryClusterID, h.ClusterID) +
		sizeVarint(entryTime, uint64(h.TimeUnixNano)) +
		sizeRepeated(entryGroups, groups)
}

// AppendGroup appends the encoding of g to dst and returns the result.
func AppendGroup(dst []byte, g Group) []byte {
	dst = appendBytes(dst, groupOrigin, g.Origin)
	dst = appendVarint(dst, groupSession, g.Session)
	dst = appendVarint(dst, groupSequence, g.Sequence)
	dst = appendVarint(dst, groupAcknowledged, g.Acknowledged)
	return appendRepeated(dst, groupOperations, g.Operations)
}

// SizeGroup returns the number of bytes that AppendGroup appends.
func SizeGroup(g Group) int {
	return sizeBytes(groupOrigin, g.Origin) +
		sizeVarint(groupSession, g.Session) +
		sizeVarint(groupSequence, g.Sequence) +
		sizeVarint(groupAcknowledged, g.Acknowledged) +
		sizeRepeated(groupOperations, g.Operations)
}

// appendVarint appends a scalar field; as in proto3, zero is not written.
func appendVarint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.VarintType)
	return protowire.AppendVarint(dst, v)
}

// appendBytes appends a bytes field; as in proto3, empty is not written.
func appendBytes(dst []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return protowire.AppendBytes(dst, v)
}

// appendRepeated appends a repeated field, of which empty elements are written.
func appendRepeated(dst []byte, num protowire.Number, vs [][]byte) []byte {
	for _, v := range vs {
		dst = protowire.AppendTag(dst, num, protowire.BytesType)
		dst = protowire.AppendBytes(dst, v)
	}
	return dst
}

func sizeVarint(num protowire.Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeVarint(v)
}

func sizeBytes(num protowire.Number, v []byte) int {
	if len(v) == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeBytes(len(v))
}

func sizeRepeated(num protowire.Number, vs [][]byte) int {
	n := 0
	for _, v := range vs {
		n += protowire.SizeTag(num) + protowire.SizeBytes(len(v))
	}
	return n
}
