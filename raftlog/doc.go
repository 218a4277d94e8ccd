// Package raftlog is the codec of the Raft log's entries: the envelope with
// format version, cluster id and the leader's clock, and the groups of
// operations in it.
//
// It owns the bytes around operations and results, never those inside them:
// operations and results are opaque here, so that a leader can join the groups
// of other nodes without decoding them. Package fsm/op, which owns those inside, is
// apart: it changes with each new operation, this one only with group commit. The bytes
// are those of the messages Entry and Group in proto/raftlog/v1; the codec is written by
// hand because every operation of the cluster goes through it, and the generated one
// copies each operation and allocates for it.
//
// Decoding is strict: it accepts exactly what this package (or a protobuf library)
// writes, fields in order and none unknown. A node that skipped an unknown field would
// apply something else than its peers; so every addition needs a new format, which older
// nodes refuse with an *UnknownFormatError.
package raftlog
