package raftguard

import (
	"slices"

	"github.com/hashicorp/raft"
)

// WithoutRemoval returns the entries for a member up to the configuration by which it leaves.
// As long as that is not committed the leader may be lost, and the others need its vote. With
// it, the member would refuse that to logs that end before its own, and not campaign itself: in
// the library (v1.7.3) no node does that its own newest configuration is without (unlike in
// section 4.2.2 of Ongaro's thesis). Once the configuration is committed, others tell it so.
// Configurations from before the member joined are older than newest, the index of the newest.
func WithoutRemoval(id raft.ServerID, entries []*raft.Log, newest uint64) []*raft.Log {
	i := slices.IndexFunc(entries, func(l *raft.Log) bool {
		return l.Type == raft.LogConfiguration && l.Index >= newest && !configures(l, id)
	})
	if i < 0 {
		return entries
	}
	return entries[:i]
}

func configures(l *raft.Log, id raft.ServerID) bool {
	return slices.ContainsFunc(raft.DecodeConfiguration(l.Data).Servers, func(s raft.Server) bool { return s.ID == id })
}
