package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/leader"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/peers"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/fsm/op"
)

const (
	// linger bounds how long the next group or entry waits for the callers that were just
	// answered. A lone caller never waits.
	linger = 8 * time.Millisecond
	// lingerMin is the smallest group after which a group lingers for several rounds. Below it
	// the callers are too few to be worth more than a part of a round.
	lingerMin = 4
)

// engine is a running Raft node with everything built on it. It exists once the node's
// cluster is known.
type engine struct {
	node          *Node
	beats         duty.Beats
	raft          *raft.Raft
	store         *raftguard.RaftStore
	machine       *apply.Machine
	witness       *peers.Witness
	transport     *transport.Transport
	configuration peers.Configuration
	batcher       *commit.Batcher
	gatherer      *commit.Gatherer
	sender        *sender
	announcer     *announcer
	local         *readindex.Local
	reads         *readindex.Reader
	pinger        *peers.Pinger
	leadership    *leader.Leadership
	hint          peers.Hint
	path          leaderPath
	quorumWatch   *quorumWatch
	memberWatch   *peers.Watch
	greetings     duty.Duty
	locator       *peers.Locator
	leaderLoss    *leader.Loss
	timeouts      *raftguard.Timeouts
	mainWatch     *raftguard.MainWatch
	// serving is the server of the other members' calls.
	serving sync.WaitGroup
}

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.record.Name())
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = n.cfg.Heartbeat, n.cfg.Heartbeat, n.cfg.lease()
	c.CommitTimeout = n.cfg.commitTimeout()
	c.MaxAppendEntries = raftguard.MaxAppendEntries
	c.SnapshotInterval = n.cfg.SnapshotInterval
	c.SnapshotThreshold = n.cfg.SnapshotThreshold
	c.TrailingLogs = n.cfg.TrailingLogs
	// Entries hold batches already, and a buffer would hide a full queue.
	c.BatchApplyCh = false
	c.ShutdownOnRemove = true
	c.NoLegacyTelemetry = true
	c.Logger = raftlogger.New(n.cfg.Logger.With("part", "raft"))
	return c
}

func (n *Node) startEngine() (*engine, error) {
	e := &engine{node: n, beats: duty.NewBeats()}
	var err error
	begin := time.Now()
	e.witness, err = peers.OpenWitness(peers.WitnessConfig{
		Storage: n.cfg.Storage, Store: n.store, Record: n.record, Table: n.table, TrustData: n.cfg.TrustData,
		TrustWait: n.cfg.TrustWait, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	counted := time.Since(begin) // The start, written where terms are.
	// It is called once Raft runs, which is after the transport.
	refusePreVotes := func(term uint64, d time.Duration) { e.transport.EnterTerm(term, d) }
	e.timeouts = raftguard.NewTimeouts(n.cfg.Heartbeat, n.cfg.lease(), n.cfg.commitTimeout(), refusePreVotes, n.log)
	e.timeouts.TermWritten(counted)
	if err := e.openTransport(); err != nil {
		return nil, err
	}
	if err := e.startRaft(); err != nil {
		_ = e.transport.Close() // The first error says what is wrong.
		return nil, err
	}
	e.startWork()
	e.startLoops()
	return e, nil
}

func (e *engine) startRaft() error {
	n := e.node
	config := n.raftConfig()
	if err := e.bootstrap(config); err != nil {
		return err
	}
	e.machine = apply.NewMachine(n.lifecycle.ctx, apply.Config{
		State: n.cfg.StateMachine, Freeze: n.cfg.TakeSnapshot, SnapshotBytes: n.cfg.SnapshotBytes,
		SnapshotWritten: n.cfg.Events.SnapshotWritten, Fatal: n.lifecycle.fail, Logger: n.log,
	})
	committed := func() uint64 { return max(e.witness.Committed(), n.cfg.StateMachine.AppliedIndex()) }
	store := raftguard.NewRaftStore(n.store, raftguard.RaftStoreConfig{
		Committed: committed, Fatal: n.lifecycle.fail, Needed: e.neededEntry, Appending: e.timeouts.Appending, Writing: e.transport.Writing,
		Wrote: e.timeouts.Wrote, EnterTerm: e.timeouts.EnterTerm,
		Replicates: raftguard.Replicates(config.LocalID, e.witness.Running), WriteFailed: e.writeFailed,
	})
	e.transport.HoldAnswers(store.AwaitStable)
	e.store = store
	snapshots := n.space.Snapshots(n.store.Snapshots(), n.cfg.Events.SnapshotRefused)
	n.table.StartsRaft(store.Configured)
	r, err := raft.NewRaft(config, e.machine, store, store, snapshots, e.transport)
	if err != nil {
		return fmt.Errorf("cluster: starting raft: %w", err)
	}
	e.witness.Started(r)
	store.Started()
	e.raft, e.configuration = r, peers.NewConfiguration(r, n.table)
	return nil
}

// writeFailed ends the leadership of a node whose log cannot be written. The store ends the
// node, too.
func (e *engine) writeFailed(err error) {
	e.transport.StepDown(e.witness.Running().CurrentTerm(), leader.OthersFirst, leader.MaxBackoff)
	e.node.lifecycle.fail(err)
}

// neededEntry returns the first entry that the log keeps for a follower which catches up. If the
// disk is nearly full, that is the newest snapshot's last entry: a leader that has sent a snapshot
// looks for its last entry, and without it the follower would get the next snapshot as well.
func (e *engine) neededEntry() uint64 {
	boundary, _ := e.node.store.Boundary()
	if e.node.space.Below() {
		return boundary
	}
	return min(boundary, e.transport.Needed())
}

// bootstrap writes the first configuration, on the founder and only if Raft has
// no state yet. A crash between the record and this is repaired by doing it at
// the next start.
func (e *engine) bootstrap(config *raft.Config) error {
	n := e.node
	record := n.record.Get()
	if !record.Founder {
		return nil
	}
	needed, err := raftguard.MustBootstrap(n.store)
	if err != nil || !needed {
		return err
	}
	var servers []raft.Server
	for _, m := range record.Members {
		servers = append(servers, peers.ServerOf(m))
	}
	err = raft.BootstrapCluster(config, n.store, n.store, n.store.Snapshots(), e.transport, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("cluster: bootstrapping raft: %w", err)
	}
	return nil
}

func (e *engine) startWork() {
	stuck := raftguard.NewStuckTransfer(e.node.lifecycle.fail)
	e.startCommit(stuck)
	e.watch()
	e.lead(stuck)
	e.startReads()
}

func (e *engine) startCommit(stuck *raftguard.StuckTransfer) {
	n, c := e.node, e.node.cfg
	e.batcher = commit.NewBatcher(commit.BatcherConfig{
		Log: &commit.RaftLog{Applier: stuck.Watch(e.raft)}, Logger: c.Logger,
		Header: func() (uint32, []byte) { return max(c.Registry.Format(), 1), n.ClusterID() },
		Linger: linger, Events: c.Events.Entries, Now: c.Now,
	})
	e.sender = &sender{e, n.record.Name()}
	e.announcer = newAnnouncer(&announcer{
		cfg: c, record: n.record, log: n.log,
		starts: e.witness.Starts(), process: e.transport.Process(), unanswered: e.path.unanswered,
	})
	e.gatherer = commit.New(commit.Config{
		Sender: e.sender, Opener: e.announcer, Logger: c.Logger,
		LeaderWait: c.LeaderWait, ResultBound: op.ResultBound,
		Linger: linger, LingerMin: lingerMin, CallLimit: c.CallLimit, Events: c.Events.Groups,
	})
	e.announcer.propose = e.gatherer.ProposeIdempotent
}

func (e *engine) watch() {
	n, c := e.node, e.node.cfg
	askVoter := func(ctx context.Context, id string) error { return e.pinger.AskVoter(ctx, id) }
	monitor := quorum.NewMonitor(quorum.Config{
		Self: string(n.record.ID()), Lease: c.lease(), Raft: e.raft, Ping: askVoter, Go: n.lifecycle.loops.Go, Reach: n.quorum,
	})
	others := peers.Config{
		Raft: e.raft, Configuration: e.configuration, Transport: e.transport, Peers: c.Peers, Record: n.record, Table: n.table, Hosts: n.hosts,
		Witness: e.witness, Hint: &e.hint, Quorum: monitor, States: e.machine.States(), Space: n.space,
		Listed: member.ListOf(c.PeerList, c.Join), Condition: n.condition, OnDivergence: c.Events.StateDiffers,
		Log: n.log,
	}
	e.pinger = peers.NewPinger(others)
	e.path.hint, e.path.table, e.path.silence = &e.hint, n.table, e.pinger.Silence
	e.path.self, e.path.wait = n.record.Name(), c.LeaderWait*7/8
	e.memberWatch = peers.NewWatch(others)
	e.locator = peers.NewLocator(others, e.pinger)
	e.greetings = peers.GreetDuty(others, c.trustWait(), n.lifecycle.run)
	roundTrip := func(id []byte) time.Duration { return e.pinger.Contact(id).RoundTrip }
	e.quorumWatch = &quorumWatch{
		engine: e, monitor: monitor, leaders: leaderChanges{changed: c.Events.LeaderChanged}, disconnected: make(chan struct{}, 1),
	}
	e.leaderLoss = &leader.Loss{
		Raft: e.raft, Transport: e.transport, Self: n.record.ID(), Voters: e.configuration.VotingMembers,
		Full: n.space.Below, Slow: func() bool { return n.disk.Slow(time.Now()) }, Priority: c.LeaderPriority,
		Ask: e.pinger.Ask, RoundTrip: roundTrip, Heartbeat: c.Heartbeat, Lease: c.lease(),
		Extra: e.timeouts.Extra, Disconnected: e.quorumWatch.memberDisconnected, Log: n.log,
	}
	e.timeouts.Started(e.raft, e.leaderLoss.RoundTripTo)
	e.mainWatch = &raftguard.MainWatch{
		Raft: e.raft, Limit: c.StallLimit, Progress: c.StateMachine.AppliedIndex, Installing: e.transport.Installing,
	}
}

func (e *engine) lead(stuck *raftguard.StuckTransfer) {
	n, c := e.node, e.node.cfg
	e.leadership = leader.NewLeadership(leader.Config{
		Ctx: n.lifecycle.ctx, Raft: e.raft, Transport: e.transport, Configuration: e.configuration, Record: n.record, Table: n.table,
		Registry: c.Registry, State: c.StateMachine, Store: n.store, Peers: c.Peers, Batcher: e.batcher, Gatherer: e.gatherer,
		Pinger: e.pinger, Space: n.space, Disk: n.disk, Timeouts: e.timeouts, Stuck: stuck, Beats: e.beats, Now: c.Now, Heartbeat: c.Heartbeat,
		Priority: c.LeaderPriority, PromoteAfter: c.PromoteAfter, Log: n.log,
	})
}

func (e *engine) startReads() {
	n, c := e.node, e.node.cfg
	e.local = readindex.NewLocal(leaderReads{e})
	e.reads = readindex.New(readindex.Config{
		Self: n.record.Name(), WaitLeader: e.gatherer.WaitLeader, Local: e.local, AskRemote: n.askReadIndex,
		WaitApplied: c.StateMachine.WaitApplied, Limit: c.LeaderWait,
	})
}

func (e *engine) startLoops() {
	n, l := e.node, e.node.lifecycle
	duties := duty.New(
		n.log,
		e.beats,
		e.memberWatch.Duty(),
		e.pinger.Duty(),
		e.locator.Duty(),
		e.witness.Duty(),
		e.greetings,
		e.announcer.duty(),
		e.timeouts.Duty(),
		e.machine.SnapshotDuty(e.raft, raft.ServerID(n.record.Name()), n.cfg.SnapshotInterval),
	)
	always := func() bool { return true }
	// In a loop of its own: the checks of others read the state, which may hang as well.
	l.run(func(ctx context.Context) { duty.New(n.log, e.beats, e.mainWatch.Duty()).Run(ctx, always, nil) })
	l.run(func(ctx context.Context) {
		duties.Run(ctx, always, nil)
		if err := e.witness.Save(ctx); err != nil {
			n.log.Debug("the record of the members' disks was not written at the end", "error", err)
		}
	})
	l.run(e.quorumWatch.run)
	l.run(e.leaderLoss.Run)
	l.run(e.leadership.Run)
}
