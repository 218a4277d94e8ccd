// Package peers holds a node's view of the other members, and keeps in touch with them.
//
// It owns the table of members as this node sees it, pings and their answers, the addresses at
// which members are dialled, greetings, and observations of the members' disks. It neither leads
// nor proposes.
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

// Config holds the dependencies of this package's parts while Raft runs.
type Config struct {
	Raft          *raft.Raft
	Configuration Configuration
	Transport     *transport.Transport
	Peers         Caller
	Record        *member.NodeRecord
	Table         *Table
	Hosts         *Hosts
	// Witness, Hint and Quorum get the members' disk states, the leader and the quorum from
	// answers.
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
