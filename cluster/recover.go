//go:build !wasip1

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// recoverStall bounds a write of a recovery: only an operator waits for it.
	recoverStall = time.Minute
	// termLeap is larger than any real term.
	termLeap = 1 << 32
)

// Recovery is what a node needs to continue after its cluster lost its quorum
// permanently. The node must not run.
type Recovery struct {
	DataDir string
	// Storage is where the node has what it stored; nil is DataDir.
	Storage Storage
	// Keep are the tags of the surviving members, this node among them.
	Keep []string
	// StateMachine is new and empty; Registry and TakeSnapshot are of the same
	// state.
	StateMachine StateMachine
	Registry     Registry
	TakeSnapshot func() Snapshot
	// Change turns the state, which holds everything that the node had stored, into that
	// of a new cluster: with another id and the surviving members.
	Change func() error
	Logger *slog.Logger
}

// Recover turns the node's data directory into that of a member of a new cluster. All
// stored entries count as committed. After a crash the same call finishes it.
//
// Survivors may have stored different amounts. Each then begins with a snapshot of its own,
// without a log; the leader sends its snapshot to the others.
func Recover(ctx context.Context, r Recovery) error {
	if r.Storage == nil {
		if _, err := member.Load(r.DataDir); err != nil {
			return err // A directory that has no node stays as it is.
		}
		r.Storage = &files{dir: r.DataDir}
	}
	record, err := r.Storage.LoadRecord()
	if err != nil {
		return err
	}
	servers, err := r.servers(record)
	if err != nil {
		return err
	}
	s, err := r.open(record)
	if err != nil {
		return err
	}
	// From here on the node does not start until the recovery is complete.
	begun := record.Clone()
	begun.Recovering = true
	if err = r.Storage.SaveRecord(begun); err == nil {
		err = r.rewrite(ctx, s, record, servers)
	}
	if err == nil {
		err = leapTerm(s)
	}
	if err == nil {
		next := record.Clone()
		next.Recovering, next.ClusterID, next.Members = false, r.Registry.ClusterID(), r.Registry.Members()
		next.Diverged, next.SetBack = "", "" // The state is that of the new cluster, by an operator's decision.
		err = r.Storage.SaveRecord(next)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("cluster: recovering: %w", err)
	}
	return nil
}

// CheckSurvivors refuses survivors that cannot be the members of a new cluster: this node is
// not among them, or the record has no such member.
func CheckSurvivors(record *member.Record, keep []string) error {
	_, err := Recovery{Keep: keep}.servers(record)
	return err
}

// servers is Raft's configuration of the survivors, as far as the record knows.
func (r Recovery) servers(record *member.Record) ([]raft.Server, error) {
	if !record.InCluster() {
		return nil, errors.New("cluster: the data directory belongs to no cluster")
	}
	if !slices.Contains(r.Keep, record.Tag) {
		return nil, fmt.Errorf("cluster: the data directory is that of node %s, which is not among those that go on", record.Tag)
	}
	var servers []raft.Server
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(r.Keep))) {
		i := slices.IndexFunc(record.Members, func(m *raftlogv1.Member) bool { return m.GetTag() == tag && !m.GetRemoved() })
		if i < 0 {
			return nil, fmt.Errorf("cluster: there is no member %s", tag)
		}
		servers = append(servers, peers.ServerOf(record.Members[i]))
	}
	return servers, nil
}

func (r Recovery) open(record *member.Record) (Store, error) {
	return openStore(r.Storage, StoreOptions{
		NodeID: record.ID.String(), MustExist: true, StallLimit: recoverStall,
		Fatal: func(error) {}, Logger: r.Logger, // The store's own errors say it too.
	})
}

func (r Recovery) rewrite(ctx context.Context, s Store, record *member.Record, servers []raft.Server) error {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(record.ID.String())
	config.Logger = raftlogger.New(r.Logger.With("part", "raft"))
	_, network := raft.NewInmemTransport(raft.ServerAddress(config.LocalID)) // It only names addresses.
	m := &recovering{
		Machine: apply.NewMachine(ctx, apply.Config{
			State: r.StateMachine, Freeze: r.TakeSnapshot, SnapshotBytes: math.MaxInt64, Fatal: func(error) {}, Logger: r.Logger,
		}),
		Recovery: r, record: record, servers: servers,
	}
	return raft.RecoverCluster(config, m, s, s, leapt{s.Snapshots(), m}, network, raft.Configuration{Servers: servers})
}

// leapTerm moves the node above every term of the old cluster. A majority of the survivors
// may lead before the others are back, and one of those may have seen newer terms than the
// majority. Without the leap its snapshot would end in a newer term than the entries that the
// new cluster has committed: it would be elected, and take those entries back.
func leapTerm(s Store) error {
	term, err := raftguard.StoredTerm(s)
	if err != nil {
		return err
	}
	return raftguard.SetStoredTerm(s, term+termLeap)
}

// recovering is a state machine that becomes that of a new cluster when all that
// was stored has been applied: when Raft takes the snapshot.
type recovering struct {
	*apply.Machine
	Recovery
	record  *member.Record
	servers []raft.Server
	// leap is how far the change moved the state's applied index.
	leap uint64
}

// leapt stores the snapshot of a recovery where the state's index has leapt to. The log goes on above it.
type leapt struct {
	raft.SnapshotStore
	by *recovering
}

func (l leapt) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport,
) (raft.SnapshotSink, error) {
	return l.SnapshotStore.Create(version, index+l.by.leap, term, c, at, t)
}

// changed means that the state is that of the new cluster already: a crash came after the
// change and before the record of it.
func (m *recovering) changed() bool {
	id := m.Registry.ClusterID()
	return len(id) > 0 && !bytes.Equal(id, m.record.ClusterID)
}

func (m *recovering) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.Failure(); err != nil {
		return nil, err
	}
	if !m.changed() {
		before := m.StateMachine.AppliedIndex()
		if err := m.Change(); err != nil {
			return nil, err
		}
		m.leap = m.StateMachine.AppliedIndex() - before
	}
	if err := m.settleServers(); err != nil {
		return nil, err
	}
	return m.Machine.Snapshot()
}

// settleServers takes the voters from the state: the record may be older. Raft stores the
// same slice.
func (m *recovering) settleServers() error {
	present := 0
	for _, known := range m.Registry.Members() {
		if known.GetRemoved() {
			continue
		}
		present++
		id := member.ServerID(known.GetId())
		i := slices.IndexFunc(m.servers, func(s raft.Server) bool { return s.ID == id })
		if i < 0 {
			return fmt.Errorf("member %s goes on in the state, and not in Raft's configuration", known.GetTag())
		}
		m.servers[i] = raft.Server{ID: id, Address: transport.Address(id), Suffrage: raft.Nonvoter}
		if known.GetVoter() {
			m.servers[i].Suffrage = raft.Voter
		}
	}
	if present != len(m.servers) {
		return fmt.Errorf("%d members go on in the state, and %d in Raft's configuration", present, len(m.servers))
	}
	return nil
}
