package member

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/idnode/idnode/internal/disklock"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Addresses are a node's addresses, as host:port with a name or an IP.
type Addresses struct {
	GRPC string
	Raft string
	// HTTP is empty if the node has no HTTP port.
	HTTP string
}

// NodeRecord is the record of the running node, in memory and in the storage. Readers get a
// record that is never changed. A record that the node must not go on ends the node. It is
// safe for concurrent use.
//
// Invariant: the record that Get returns is durable.
type NodeRecord struct {
	cfg NodeRecordConfig
	// changing is held while a change is in progress.
	changing disklock.Mutex
	current  atomic.Pointer[Record]
}

// NodeRecordConfig is the settings of a node, and the dependencies of a NodeRecord.
type NodeRecordConfig struct {
	// Tag is the requested tag; empty if none was requested.
	Tag       string
	Advertise Addresses
	Watcher   bool
	// LogFormat is the newest log format that the node reads.
	LogFormat uint32
	// TrustData means that an operator trusts the data directory.
	TrustData bool
	// Save replaces the record in the storage; Fail ends the node.
	Save func(*Record) error
	Fail func(error)
}

// NewNodeRecord returns the NodeRecord of a stored record.
func NewNodeRecord(record *Record, cfg NodeRecordConfig) *NodeRecord {
	r := &NodeRecord{cfg: cfg, changing: disklock.New()}
	r.current.Store(record)
	return r
}

// Fail ends the node with err, without recording it.
func (r *NodeRecord) Fail(err error) { r.cfg.Fail(err) }

// Get returns the newest record, which must not be changed.
func (r *NodeRecord) Get() *Record { return r.current.Load() }

// Update changes the record in the storage, then in memory. change gets a copy and
// reports whether it changed anything.
func (r *NodeRecord) Update(change func(*Record) bool) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	next := r.current.Load().Clone()
	if !change(next) {
		return nil
	}
	if err := r.cfg.Save(next); err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

func (r *NodeRecord) ID() []byte { return r.Get().ID.Bytes() }

func (r *NodeRecord) Name() string { return r.Get().ID.String() }

// IsSelf reports whether a member is this node.
func (r *NodeRecord) IsSelf(m *raftlogv1.Member) bool { return string(m.GetId()) == string(r.ID()) }

// TagIn returns the node's tag in a record, or else the requested tag; empty if there is none.
func (r *NodeRecord) TagIn(now *Record) string { return cmp.Or(now.Tag, r.cfg.Tag) }

func (r *NodeRecord) Member() *raftlogv1.Member {
	now := r.Get()
	m := &raftlogv1.Member{
		Id: now.ID.Bytes(), Tag: r.TagIn(now),
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

// Refuses returns why the node does not start, or nil: it runs under another tag, was
// removed, or its directory is not to be trusted.
func (r *NodeRecord) Refuses() error {
	now := r.Get()
	switch {
	case now.Recovering:
		return errors.New("cluster: a recovery of the cluster was cut short: run the same 'idnode recover' again")
	case now.Removed:
		return RemovedError(now.Tag)
	case now.Diverged != "":
		return divergedError(now.Diverged)
	case now.SetBack != "" && !r.cfg.TrustData:
		return SetBackError(now.SetBack)
	case now.Tag != "" && r.cfg.Tag != "" && now.Tag != r.cfg.Tag:
		return fmt.Errorf("cluster: the data directory belongs to node %s, not %s: %w", now.Tag, r.cfg.Tag, ErrOtherNode)
	}
	return nil
}

func (r *NodeRecord) end(why error, change func(*Record) bool) error {
	err := errors.Join(why, r.Update(change))
	r.cfg.Fail(err)
	return err
}

// EndRemoved records that this node was removed, and ends it.
func (r *NodeRecord) EndRemoved() {
	_ = r.end(RemovedError(r.Get().Tag), func(r *Record) bool {
		changed := !r.Removed
		r.Removed = true
		return changed
	})
}

// EndSetBack records that others have seen data of this node's disk that the disk has lost,
// and ends the node.
func (r *NodeRecord) EndSetBack(why string) error {
	return r.end(SetBackError(why), func(r *Record) bool {
		changed := r.SetBack == ""
		r.SetBack = why
		return changed
	})
}

// EndDiverged records that this node's state differs from the cluster's, and ends the node:
// its answers may contradict the log.
func (r *NodeRecord) EndDiverged(why string) {
	_ = r.end(divergedError(why), func(r *Record) bool {
		changed := r.Diverged == ""
		r.Diverged = why
		return changed
	})
}

// RemovedError is the error of a node that was removed under this tag.
func RemovedError(tag string) error {
	return fmt.Errorf("cluster: %w (tag %s): empty the data directory to join as a new member, under a new tag", ErrRemoved, tag)
}

// SetBackError is the error of a node whose data directory is an older copy.
func SetBackError(why string) error { return fmt.Errorf("cluster: %w: %s", ErrSetBack, why) }

func divergedError(why string) error { return fmt.Errorf("cluster: %w: %s", ErrDiverged, why) }
