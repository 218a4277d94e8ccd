package peers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// membersTick is the interval of comparing the table of members with the copy in the record.
// A slightly old copy is harmless.
const membersTick = 250 * time.Millisecond

// Watch follows the table of members: it keeps a copy in the record, with the IP
// addresses of their host names, and notices members that have moved, and the removal of
// this node.
type Watch struct {
	cfg Config
	// left are the members that were disconnected because they have left.
	left map[string]bool
}

// NewWatch returns a Watch that has seen no member leave.
func NewWatch(cfg Config) *Watch {
	return &Watch{cfg: cfg, left: map[string]bool{}}
}

// Duty follows the table.
func (w *Watch) Duty() duty.Duty {
	return duty.Duty{Name: "members", Every: membersTick, Check: duty.Always(w.follow)}
}

func (w *Watch) follow(context.Context) error {
	err := w.cfg.Record.Update(func(r *member.Record) bool {
		// Read in here, so that concurrent changes are not lost.
		members := w.cfg.Table.Refresh().Registered
		hosts := w.cfg.Hosts.of(members)
		w.disconnectMoved(r.Members, members)
		if member.SameMembers(r.Members, members) && maps.EqualFunc(r.Hosts, hosts, slices.Equal) {
			return false
		}
		r.Members, r.Hosts = members, hosts
		return true
	})
	if err != nil {
		w.cfg.Record.Fail(fmt.Errorf("cluster: %w", err))
		return nil
	}
	// A leader transfers leadership first; Raft ends it if that cannot be done.
	if m, ok := w.cfg.Table.ByID(w.cfg.Record.ID()); ok && w.cfg.Configuration.HasLeft(m) && w.cfg.Raft.State() != raft.Leader {
		w.cfg.Record.EndRemoved()
	}
	return nil
}

// disconnectMoved closes the connections of members that have left or have a new address: they
// have to greet again. A connection from the old address may be another process of the same
// id, which must not vote beside the process at the new address.
func (w *Watch) disconnectMoved(before, now []*raftlogv1.Member) {
	known := map[string]*raftlogv1.Member{}
	for _, m := range before {
		known[string(m.GetId())] = m
	}
	for _, m := range now {
		id := string(m.GetId())
		left, old := w.cfg.Configuration.HasLeft(m), known[id]
		leaves := left && !w.left[id]
		w.left[id] = left
		moves := old != nil && old.GetRaftAddress() != m.GetRaftAddress()
		if w.cfg.Record.IsSelf(m) || !leaves && !moves {
			continue
		}
		w.cfg.Transport.Disconnect(member.ServerID(m.GetId()))
	}
}

// CheckRaft ends the node when Raft has shut down by itself, as after the node's
// removal.
func (w *Watch) CheckRaft() {
	switch {
	case w.cfg.Raft.State() != raft.Shutdown:
	case w.cfg.Table.SelfRemoved():
		w.cfg.Record.EndRemoved()
	default:
		w.cfg.Record.Fail(errors.New("cluster: raft has ended by itself"))
	}
}
