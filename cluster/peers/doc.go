// Package peers is what a node knows of the other members, and how it keeps in touch with them.
//
// It owns the table of members as this node sees it, pings and what their answers tell, the
// addresses at which members are dialled, greetings, and what was seen of the members' disks.
// It neither leads nor proposes.
package peers

import (
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/cluster/transport"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// Config is what the parts of this package need while Raft runs.
type Config struct {
	Raft          *raft.Raft
	Configuration Configuration
	Transport     *transport.Transport
	Peers         Caller
	Record        *member.NodeRecord
	Table         *Table
	Hosts         *Hosts
	// Witness, Hint and Quorum get what answers tell of the members' disks, of the leader
	// and of the quorum.
	Witness *Witness
	Hint    *Hint
	Quorum  *quorum.Monitor
	// States are this node's own.
	States *apply.States
	Space  *disk.Space
	Listed []member.Listed
	// Condition is this node's own answer to a ping.
	Condition func() *peerv1.PingResponse
	// OnDivergence is called for each member whose state begins to differ.
	OnDivergence func()
	Log          *slog.Logger
}
