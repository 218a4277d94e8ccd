package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/cluster/transport"
)

const (
	// enqueueTimeout is how long Raft's main loop may take to accept something. It
	// accepts at once unless its disk hangs, and then the store's watchdog ends the
	// process.
	enqueueTimeout = 5 * time.Second
	// maxAppendEntries is how many entries one message between nodes carries. It exceeds
	// the number of proposals in flight, so that a burst is never cut and left waiting;
	// entries of a full size times it stay below 10 MB.
	maxAppendEntries = 64
)

// lingerMin is the smallest group after which a group lingers. Below
// it the callers are too few to be worth a wait.
const lingerMin = 4

// engine is a running Raft node with everything built on it. It exists once the node's
// cluster is known.
type engine struct {
	node *Node
	// name is the node's Raft name.
	name          string
	raft          *raft.Raft
	machine       *apply.Machine
	witness       *diskWitness
	transport     *transport.Transport
	batcher       *commit.Batcher
	gatherer      *commit.Gatherer
	local         *readindex.Local
	reads         *readindex.Reader
	hint          hint
	announcer     *announcer
	quorum        *quorum.Monitor
	pinger        *memberPinger
	stuckTransfer *stuckTransfer
	offers        offers
	// abstention belongs to the current leadership's work.
	abstention abstention
	// ready is set while this node leads and has passed its first barrier.
	ready atomic.Pointer[readindex.Ready]
	// leaderSignal wakes monitorLeadership; the value tells only that it changed.
	leaderSignal *leaderSignal
}

func openStore(cfg Config, id string, inCluster bool, fatal func(error)) (Store, error) {
	s, err := cfg.Storage.OpenStore(StoreOptions{
		NodeID: id, MustExist: inCluster, StallLimit: cfg.StallLimit, Fatal: fatal, Logger: cfg.Logger, Wrote: cfg.Events.Wrote,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: opening the store: %w", err)
	}
	bounded, err := apply.NewBoundaryStore(s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cluster: opening the store: %w", err), s.Close())
	}
	return bounded, nil
}

// raftConfig returns the library's configuration, with the reasons for other values than
// its defaults.
func (n *Node) raftConfig(leaderSignal *leaderSignal) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = n.record.get().ID.ServerID()
	c.HeartbeatTimeout = n.cfg.Timings.Heartbeat
	c.ElectionTimeout = n.cfg.Timings.Election
	c.LeaderLeaseTimeout = n.cfg.Timings.Lease
	c.CommitTimeout = n.cfg.Timings.Commit
	c.MaxAppendEntries = maxAppendEntries
	c.SnapshotInterval = n.cfg.SnapshotInterval
	c.SnapshotThreshold = n.cfg.SnapshotThreshold
	c.TrailingLogs = n.cfg.TrailingLogs
	// Entries hold batches already, and a buffer would hide a full queue.
	c.BatchApplyCh = false
	c.ShutdownOnRemove = true
	c.NoLegacyTelemetry = true
	// Raft blocks on this channel, so it is always read.
	c.NotifyCh = leaderSignal.notify
	c.Logger = raftlogger.New(n.cfg.Logger.With("part", "raft"))
	return c
}

// startEngine starts Raft and everything built on it.
func (n *Node) startEngine() (*engine, error) {
	e := &engine{node: n, name: n.record.get().ID.String(), announcer: newAnnouncer(n), leaderSignal: newLeaderSignal()}
	e.pinger = newMemberPinger(e)
	e.stuckTransfer = &stuckTransfer{limit: stuckTransferLimit, fatal: n.lifecycle.fail}
	var err error
	if e.witness, err = n.openWitness(); err != nil {
		return nil, err
	}
	if e.transport, err = n.openTransport(e.witness, e.electorate); err != nil {
		return nil, err
	}
	e.announcer.starts, e.announcer.process = e.witness.stored.Starts, e.transport.Process()
	if err := e.startRaft(); err != nil {
		_ = e.transport.Close() // The first error says what is wrong.
		return nil, err
	}
	if err := e.startWork(); err != nil {
		_ = e.stopRaft() // The first error says what is wrong.
		return nil, err
	}
	e.startLoops()
	return e, nil
}

// startRaft starts Raft; on the founder's first start it writes the first
// configuration before.
func (e *engine) startRaft() error {
	n := e.node
	config := n.raftConfig(e.leaderSignal)
	n.lifecycle.run(e.leaderSignal.listen)
	if err := e.bootstrap(config); err != nil {
		return err
	}
	e.machine = apply.NewMachine(n.lifecycle.ctx, apply.Config{
		State: n.cfg.StateMachine, Freeze: n.cfg.TakeSnapshot, SnapshotBytes: n.cfg.SnapshotBytes,
		SnapshotWritten: n.cfg.Events.SnapshotWritten, Fatal: n.lifecycle.fail, Logger: n.log,
	})
	committed := func() uint64 { return max(e.witness.committed(), n.cfg.StateMachine.AppliedIndex()) }
	store := apply.NewRaftStore(n.store, committed, n.lifecycle.fail)
	snapshots := apply.BoundedSnapshots(n.store.Snapshots(), n.space.free, n.space.mark, n.cfg.Events.SnapshotRefused)
	r, err := raft.NewRaft(config, e.machine, store, store, snapshots, e.transport)
	if err != nil {
		return fmt.Errorf("cluster: starting raft: %w", err)
	}
	e.witness.raft.Store(r)
	store.Started()
	e.raft = r
	return nil
}

// bootstrap writes the first configuration, on the founder and only if Raft has
// no state yet. A crash between the record and this is repaired by doing it at
// the next start.
func (e *engine) bootstrap(config *raft.Config) error {
	n := e.node
	record := n.record.get()
	if !record.Founder {
		return nil
	}
	needed, err := mustBootstrap(n.store)
	if err != nil || !needed {
		return err
	}
	var servers []raft.Server
	for _, m := range record.Members {
		servers = append(servers, serverOf(m))
	}
	err = raft.BootstrapCluster(config, n.store, n.store, n.store.Snapshots(), e.transport, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("cluster: bootstrapping raft: %w", err)
	}
	return nil
}

// startWork builds group commit and reads on top of Raft.
func (e *engine) startWork() error {
	n, c := e.node, e.node.cfg
	var err error
	e.batcher, err = commit.NewBatcher(commit.BatcherConfig{
		Log: commit.NewRaftLog(watchedRaft{e.raft, e.stuckTransfer}, enqueueTimeout), Logger: c.Logger,
		Header:   func() (uint32, []byte) { return max(c.Registry.Format(), 1), n.ClusterID() },
		InFlight: c.Commit.EntriesInFlight, Linger: c.Commit.Linger, Events: c.Events.Entries, Now: c.Now,
	})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	e.gatherer, err = commit.New(commit.Config{
		Sender: sender{e}, Opener: e.announcer, Logger: c.Logger,
		InFlight: c.Commit.GroupsInFlight, QueueLength: c.Commit.QueueLength, LeaderWait: c.LeaderWait,
		Linger: c.Commit.Linger, LingerMin: lingerMin, CallLimit: c.Commit.CallLimit, Events: c.Events.Groups,
	})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	e.announcer.propose = e.gatherer.ProposeIdempotent
	e.quorum = quorum.NewMonitor(quorum.Config{
		Self: string(e.id()), Lease: c.Timings.Lease, Raft: e.raft, Ping: e.pingVoter, Go: n.lifecycle.loops.Go, State: n.quorum,
	})
	e.local = readindex.NewLocal(leaderReads{e}, readindex.LocalConfig{})
	e.reads, err = readindex.New(readindex.Config{
		Self: e.name, Leaders: e.gatherer, Local: e.local, Remote: remoteReads{e}, State: c.StateMachine, Limit: c.LeaderWait,
	})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// startLoops starts the node's own goroutines.
func (e *engine) startLoops() {
	l := e.node.lifecycle
	l.run(e.watchQuorum)
	l.run(e.watchMembers)
	l.run(e.pinger.run)
	l.run(e.keepWitness)
	l.run(e.greetMembers)
	l.run(e.monitorLeadership)
	l.run(e.announcer.run)
	l.run(e.snapshotByBytes)
}
