// Package raftguard guards against defects of the Raft library (hashicorp/raft v1.7.3): one
// file for each defect, named by it, to be deleted when the library moves. Package transport
// calls some guards where messages pass, and has the guards that concern connections alone.
package raftguard

import "github.com/hashicorp/raft"

// Store is Raft's log, votes and snapshots. A method's write is durable when it returns
// nil; after an error for which the node ends, every call fails.
type Store interface {
	raft.LogStore
	raft.StableStore
	Snapshots() raft.SnapshotStore
	// Close is called once, when Raft has ended.
	Close() error
}
