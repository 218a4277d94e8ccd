package transport

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// nodes is this process's knowledge of other nodes, by Raft id. It is safe for concurrent use.
type nodes struct {
	mu   sync.Mutex
	byID map[raft.ServerID]knownNode
}

type knownNode struct {
	// process is the process found at the member's own address.
	process uint64
	// accepted means that this process has greeted the node, and the node has accepted it.
	accepted bool
	// disk is the node's disk state, from its greeting or answer; nil before that.
	disk *witness.DiskState
	// seen means that the node has greeted this process, or answered it.
	seen bool
	// dialFailed is the error of the newest dial of its Raft port, nil if that succeeded;
	// failing is when the first since the last success failed, and failed when the newest did.
	dialFailed      error
	failing, failed time.Time
}

func newNodes() *nodes { return &nodes{byID: map[raft.ServerID]knownNode{}} }

func (n *nodes) get(id raft.ServerID) knownNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byID[id]
}

func (n *nodes) change(id raft.ServerID, change func(*knownNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.byID[id]
	change(&of)
	n.byID[id] = of
}

func (n *nodes) accepted(id raft.ServerID) { n.change(id, func(n *knownNode) { n.accepted = true }) }

func (n *nodes) tell(id raft.ServerID, disk witness.DiskState) {
	n.change(id, func(n *knownNode) { n.disk = &disk })
}

// greeted records that the node has greeted this process, and proved who it is.
func (n *nodes) greeted(id raft.ServerID) { n.change(id, func(n *knownNode) { n.seen = true }) }

func (n *nodes) reached(id raft.ServerID) {
	n.change(id, func(n *knownNode) { n.seen, n.dialFailed, n.failing = true, nil, time.Time{} })
}

func (n *nodes) unreached(id raft.ServerID, err error) {
	n.change(id, func(n *knownNode) {
		n.failed = time.Now()
		if n.dialFailed == nil {
			n.failing = n.failed
		}
		n.dialFailed = err
	})
}

// heldBack returns why a member is not dialled yet; nil if it may be.
func (n *nodes) heldBack(peer Peer) error {
	of := n.get(raft.ServerID(peer.ID))
	if peer.Voter || of.seen || of.dialFailed == nil {
		return nil
	}
	wait := min(max(of.failed.Sub(of.failing), leastBackoff), maxBackoff)
	if time.Since(of.failed) >= wait {
		return nil
	}
	return of.dialFailed
}

// beyond returns one of the nodes whose log is more up-to-date than log; false if there is none.
func (n *nodes) beyond(ids []raft.ServerID, log witness.DiskState) (raft.ServerID, bool) {
	for _, id := range ids {
		if disk := n.get(id).disk; disk != nil && log.Behind(disk.LastTerm, disk.Last) {
			return id, true
		}
	}
	return "", false
}

// Unreachable returns since when dials to a member's Raft port fail, and the newest error;
// nil if the newest dial succeeded, or there was none.
func (t *Transport) Unreachable(id raft.ServerID) (since time.Time, err error) {
	n := t.stream.nodes.get(id)
	return n.failing, n.dialFailed
}

// HeldBack returns why a member is not dialled for a while; nil if it may be: see leastBackoff.
func (t *Transport) HeldBack(id raft.ServerID) error {
	peer, err := t.stream.lookup(string(id))
	if err != nil {
		return err
	}
	return t.stream.nodes.heldBack(peer)
}

// Greeted reports whether a node has accepted a greeting of this process.
func (t *Transport) Greeted(id raft.ServerID) bool { return t.stream.nodes.get(id).accepted }
