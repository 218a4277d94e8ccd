// Package raftlogv1 has the messages of the Raft log and of snapshots, generated
// from the proto files beside it. They are private to idnode, and versioned:
// messages of the public API never go into the log.
package raftlogv1
