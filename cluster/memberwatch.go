package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// membersTick is how often the table of members is compared with the copy in the record.
// A slightly old copy is harmless.
const membersTick = 250 * time.Millisecond

// memberWatch follows the table of members: it keeps a copy in the record, with the IP
// addresses of their host names, and notices members that have moved, and the removal of
// this node.
type memberWatch struct {
	raft          *raft.Raft
	configuration configuration
	transport     *transport.Transport
	record        *nodeRecord
	roster        *roster
	hosts         *hosts
	// onRemoved is called for each member that was removed and has left Raft's
	// configuration; it may be nil.
	onRemoved func(*raftlogv1.Member)
	// left are the members that were disconnected because they have left.
	left map[string]bool
}

// run follows the table until ctx ends.
func (w *memberWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.record.update(func(r *member.Record) bool {
			// Read in here, so that concurrent changes are not lost.
			members := w.roster.refresh().registered
			hosts := w.hosts.of(members)
			w.disconnectMoved(r.Members, members)
			if member.SameMembers(r.Members, members) && maps.EqualFunc(r.Hosts, hosts, slices.Equal) {
				return false
			}
			r.Members, r.Hosts = members, hosts
			return true
		})
		if err != nil {
			w.record.fail(fmt.Errorf("cluster: %w", err))
			return
		}
		// A leader transfers leadership first; Raft ends it if that cannot be done.
		if m, ok := w.roster.byID(w.record.id()); ok && w.configuration.left(m) && w.raft.State() != raft.Leader {
			w.record.removed()
		}
		sleep(ctx, membersTick)
	}
}

// disconnectMoved closes the connections of members that have left or have a new
// address: they have to greet again. A connection from the old address may be another
// process of the same id, which must not vote beside the one at the new address.
func (w *memberWatch) disconnectMoved(before, now []*raftlogv1.Member) {
	known := map[string]*raftlogv1.Member{}
	for _, m := range before {
		known[string(m.GetId())] = m
	}
	for _, m := range now {
		id := string(m.GetId())
		left, old := w.configuration.left(m), known[id]
		leaves := left && !w.left[id]
		w.left[id] = left
		moves := old != nil && old.GetRaftAddress() != m.GetRaftAddress()
		if w.record.isSelf(m) || !leaves && !moves {
			continue
		}
		w.transport.Disconnect(member.ServerID(m.GetId()))
		if leaves && w.onRemoved != nil {
			w.onRemoved(m)
		}
	}
}

// checkRaft ends the node when Raft has ended by itself, which it does when it
// was removed.
func (w *memberWatch) checkRaft() {
	switch {
	case w.raft.State() != raft.Shutdown:
	case w.roster.selfRemoved():
		w.record.removed()
	default:
		w.record.fail(errors.New("cluster: raft has ended by itself"))
	}
}
