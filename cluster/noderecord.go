package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// nodeRecord is who this node is: its record, in memory and in the storage. Readers get a
// record that is never changed. A record of why the node must not go on ends it.
//
// Invariant: what get returns is durable.
type nodeRecord struct {
	cfg Config
	// fail ends the node.
	fail func(error)
	// changing is full while a change is in progress. It is not a mutex because a change
	// waits for the disk, and virtual time does not advance while a goroutine waits for a
	// mutex.
	changing chan struct{}
	current  atomic.Pointer[member.Record]
}

func newNodeRecord(cfg Config, record *member.Record, fail func(error)) *nodeRecord {
	r := &nodeRecord{cfg: cfg, fail: fail, changing: make(chan struct{}, 1)}
	r.current.Store(record)
	return r
}

func (r *nodeRecord) get() *member.Record { return r.current.Load() }

// update changes the record in the storage, then in memory. change gets a copy and
// reports whether it changed anything.
func (r *nodeRecord) update(change func(*member.Record) bool) error {
	r.changing <- struct{}{}
	defer func() { <-r.changing }()
	next := r.current.Load().Clone()
	if !change(next) {
		return nil
	}
	if err := r.cfg.Storage.SaveRecord(next); err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

// id returns the node's raw Raft id, and name its Raft name.
func (r *nodeRecord) id() []byte { return r.get().ID.Bytes() }

func (r *nodeRecord) name() string { return r.get().ID.String() }

func (r *nodeRecord) isSelf(m *raftlogv1.Member) bool { return string(m.GetId()) == string(r.id()) }

// tagIn returns the node's tag in a record, or the requested one; empty if there is none.
func (r *nodeRecord) tagIn(now *member.Record) string { return cmp.Or(now.Tag, r.cfg.Tag) }

// member returns this node as it introduces itself.
func (r *nodeRecord) member() *raftlogv1.Member {
	now := r.get()
	m := &raftlogv1.Member{
		Id: now.ID.Bytes(), Tag: r.tagIn(now),
		GrpcAddress: r.cfg.Advertise.GRPC, RaftAddress: r.cfg.Advertise.Raft, HttpAddress: r.cfg.Advertise.HTTP,
		Watcher: r.cfg.Watcher, LogFormat: r.cfg.LogFormat,
	}
	// The cluster's values count: a flag changes neither later.
	for _, known := range now.Members {
		if string(known.GetId()) == string(m.GetId()) {
			m.Watcher, m.Voter = known.GetWatcher(), known.GetVoter()
		}
	}
	return m
}

// refuses returns why the node does not start: as another node, as a removed one, or from
// a directory that is not to be trusted.
func (r *nodeRecord) refuses() error {
	now := r.get()
	switch {
	case now.Recovering:
		return errors.New("cluster: a recovery of the cluster was cut short: run the same 'idnode recover' again")
	case now.Removed:
		return removedError(now.Tag)
	case now.Diverged != "":
		return divergedError(now.Diverged)
	case now.SetBack != "" && !r.cfg.TrustData:
		return setBackError(now.SetBack)
	case now.Tag != "" && r.cfg.Tag != "" && now.Tag != r.cfg.Tag:
		return fmt.Errorf("cluster: the data directory belongs to node %s, not %s: %w", now.Tag, r.cfg.Tag, member.ErrOtherNode)
	}
	return nil
}

// end records why this node must not go on, and ends it.
func (r *nodeRecord) end(why error, change func(*member.Record) bool) error {
	err := errors.Join(why, r.update(change))
	r.fail(err)
	return err
}

// removed records that this node was removed, and ends it.
func (r *nodeRecord) removed() {
	_ = r.end(removedError(r.get().Tag), func(r *member.Record) bool {
		changed := !r.Removed
		r.Removed = true
		return changed
	})
}

// setBack records that others have seen more of this node's disk than it has, and ends
// the node.
func (r *nodeRecord) setBack(why string) error {
	return r.end(setBackError(why), func(r *member.Record) bool {
		changed := r.SetBack == ""
		r.SetBack = why
		return changed
	})
}

// diverged records that this node's state is not the cluster's, and ends it: its answers
// may not be what the log holds.
func (r *nodeRecord) diverged(why string) {
	_ = r.end(divergedError(why), func(r *member.Record) bool {
		changed := r.Diverged == ""
		r.Diverged = why
		return changed
	})
}

func removedError(tag string) error {
	return fmt.Errorf("cluster: %w (tag %s): empty the data directory to join as a new member, under a new tag", member.ErrRemoved, tag)
}

func setBackError(why string) error { return fmt.Errorf("cluster: %w: %s", member.ErrSetBack, why) }

func divergedError(why string) error { return fmt.Errorf("cluster: %w: %s", member.ErrDiverged, why) }
