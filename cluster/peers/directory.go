package peers

import (
	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/transport"
)

// directory is the transport's view of the table of members.
type directory struct {
	table *Table
	// raft returns nil before Raft runs.
	raft func() *raft.Raft
}

// NewDirectory returns a directory. raft returns nil before Raft runs.
func NewDirectory(table *Table, raft func() *raft.Raft) transport.Directory {
	return directory{table, raft}
}

var _ transport.Directory = directory{}

// Lookup implements transport.Directory. A removed member whose vote still counts is returned
// as present. Before Raft runs here, that is not known, and a removed member is unknown:
// returned as removed, its node would end.
func (d directory) Lookup(id string) (transport.Peer, bool) {
	m, ok := d.table.ByServerID(id)
	r := d.raft()
	if !ok || m.GetRemoved() && r == nil {
		return transport.Peer{}, false
	}
	return transport.Peer{ID: id, Tag: m.GetTag(), Address: m.GetRaftAddress(), Removed: NewConfiguration(r, d.table).HasLeft(m)}, true
}
