package cluster

import (
	"strconv"

	"github.com/hashicorp/raft"
)

// RaftStats are the Raft library's statistics.
type RaftStats struct {
	// State is follower, candidate, leader or shutdown.
	State string
	// Term is the present one.
	Term uint64
	// LastIndex is the newest entry in this node's log, Commit the newest that it
	// knows to be committed, Applied the newest handed to the state machine.
	LastIndex, Commit, Applied uint64
	// SnapshotIndex is where the newest snapshot ends.
	SnapshotIndex uint64
	// Pending is how many entries wait for the state machine.
	Pending uint64
	// Voters and Nonvoters count the servers of the configuration.
	Voters, Nonvoters int
}

// RaftStats returns Raft's statistics; false before Raft runs.
func (n *Node) RaftStats() (RaftStats, bool) {
	e := n.up.Load()
	if e == nil {
		return RaftStats{}, false
	}
	stats := e.raft.Stats()
	f := RaftStats{
		State: raftStates[e.raft.State()], Term: e.raft.CurrentTerm(), LastIndex: e.raft.LastIndex(),
		Commit: e.raft.CommitIndex(), Applied: e.raft.AppliedIndex(),
		SnapshotIndex: number(stats["last_snapshot_index"]), Pending: number(stats["fsm_pending"]),
	}
	for _, s := range e.configuration.servers() {
		if s.Suffrage == raft.Voter {
			f.Voters++
		} else {
			f.Nonvoters++
		}
	}
	return f, true
}

var raftStates = map[raft.RaftState]string{
	raft.Follower: "follower", raft.Candidate: "candidate", raft.Leader: "leader", raft.Shutdown: "shutdown",
}

// number parses a number that the library gives as text.
func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0 // The library prints numbers only.
	}
	return n
}
