package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/quorum"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/readindex"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/fsm/op"
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
	node          *Node
	raft          *raft.Raft
	machine       *apply.Machine
	witness       *diskWitness
	transport     *transport.Transport
	configuration configuration
	batcher       *commit.Batcher
	gatherer      *commit.Gatherer
	sender        *sender
	announcer     *announcer
	local         *readindex.Local
	reads         *readindex.Reader
	pinger        *memberPinger
	check         voterCheck
	transfer      *leaderTransfer
	membership    *membership
	leadership    *leadership
	signal        *leaderSignal
	hint          hint
	quorumWatch   *quorumWatch
	memberWatch   *memberWatch
	locator       *locator
	leaderLoss    *leaderLoss
	elections     *electionTimeout
	mainWatch     *mainWatch
}

func openStore(cfg Config, id string, inCluster bool, slowed func(bool), fatal func(error)) (*apply.BoundaryStore, error) {
	s, err := cfg.Storage.OpenStore(StoreOptions{
		NodeID: id, MustExist: inCluster, StallLimit: cfg.StallLimit, SlowLimit: cfg.SlowLimit, Slowed: slowed, Fatal: fatal, Logger: cfg.Logger, Wrote: cfg.Events.Wrote,
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
	c.LocalID = raft.ServerID(n.record.name())
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
	e := &engine{node: n, signal: newLeaderSignal()}
	var err error
	begin := time.Now()
	if e.witness, err = openWitness(n.cfg, n.store, n.record, n.roster, n.log); err != nil {
		return nil, err
	}
	counted := time.Since(begin) // The start, written where terms are.
	e.elections = newElectionTimeout(n.cfg.Timings.Election, n.log)
	e.elections.written(counted)
	if e.transport, err = openTransport(n.cfg, n.record, n.roster, n.hosts, e.witness, e.elections.voteAnswered); err != nil {
		return nil, err
	}
	e.elections.refusePreVotes = e.transport.EnterTerm
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
	config := n.raftConfig(e.signal)
	n.lifecycle.run(e.signal.listen)
	if err := e.bootstrap(config); err != nil {
		return err
	}
	e.machine = apply.NewMachine(n.lifecycle.ctx, apply.Config{
		State: n.cfg.StateMachine, Freeze: n.cfg.TakeSnapshot, SnapshotBytes: n.cfg.SnapshotBytes,
		SnapshotWritten: n.cfg.Events.SnapshotWritten, Fatal: n.lifecycle.fail, Logger: n.log,
	})
	committed := func() uint64 { return max(e.witness.committed(), n.cfg.StateMachine.AppliedIndex()) }
	store := apply.NewRaftStore(n.store, committed, n.lifecycle.fail, e.neededEntry, e.transport.Writing, e.elections.enterTerm)
	snapshots := apply.BoundedSnapshots(n.store.Snapshots(), n.space.free, n.space.lowWater, n.cfg.Events.SnapshotRefused)
	n.roster.configured = store.Configured
	r, err := raft.NewRaft(config, e.machine, store, store, snapshots, e.transport)
	if err != nil {
		return fmt.Errorf("cluster: starting raft: %w", err)
	}
	e.witness.raft.Store(r)
	e.elections.started(r)
	store.Started()
	e.raft, e.configuration = r, configuration{r, n.roster}
	return nil
}

// neededEntry returns the first entry that the log keeps for a follower which catches up. It
// is the newest snapshot's last one if the disk is nearly full: a leader that has sent a
// snapshot looks for its last entry, and without that the follower would get the next snapshot,
// too, where one is the newest meanwhile.
func (e *engine) neededEntry() uint64 {
	boundary := e.node.store.Boundary()
	if e.node.space.below.Load() {
		return boundary
	}
	return min(boundary, e.transport.Needed())
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

// startWork builds on top of Raft what this node does with it.
func (e *engine) startWork() error {
	stuck := &stuckTransfer{limit: stuckTransferLimit, fatal: e.node.lifecycle.fail}
	if err := e.startCommit(stuck); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	e.watch()
	e.lead(stuck)
	if err := e.startReads(); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// startCommit starts group commit.
func (e *engine) startCommit(stuck *stuckTransfer) (err error) {
	n, c := e.node, e.node.cfg
	e.batcher, err = commit.NewBatcher(commit.BatcherConfig{
		Log: commit.NewRaftLog(watchedRaft{e.raft, stuck}, enqueueTimeout), Logger: c.Logger,
		Header:   func() (uint32, []byte) { return max(c.Registry.Format(), 1), n.ClusterID() },
		InFlight: c.Commit.EntriesInFlight, Linger: c.Commit.Linger, Events: c.Events.Entries, Now: c.Now,
	})
	if err != nil {
		return err
	}
	e.sender = &sender{
		name: n.record.name(), batcher: e.batcher, space: n.space, roster: n.roster, hint: &e.hint, peers: c.Peers, forwarded: c.Events.Forwarded,
	}
	e.announcer = newAnnouncer(&announcer{
		cfg: c, record: n.record, log: n.log,
		starts: e.witness.stored.Starts, process: e.transport.Process(),
	})
	e.gatherer, err = commit.New(commit.Config{
		Sender: e.sender, Opener: e.announcer, Logger: c.Logger,
		InFlight: c.Commit.GroupsInFlight, QueueLength: c.Commit.QueueLength, LeaderWait: c.LeaderWait, ResultBound: op.ResultBound,
		Linger: c.Commit.Linger, LingerMin: lingerMin, CallLimit: c.Commit.CallLimit, Events: c.Events.Groups,
	})
	if err != nil {
		return err
	}
	e.announcer.propose = e.gatherer.ProposeIdempotent
	return nil
}

// watch builds what watches the other nodes.
func (e *engine) watch() {
	n, c := e.node, e.node.cfg
	p := &pings{
		peers: c.Peers, record: n.record, roster: n.roster, witness: e.witness, states: e.machine.States(), hint: &e.hint,
		log: n.log,
	}
	monitor := quorum.NewMonitor(quorum.Config{
		Self: string(n.record.id()), Lease: c.Timings.Lease, Raft: e.raft, Ping: p.askVoter, Go: n.lifecycle.loops.Go, State: n.quorum,
	})
	e.pinger = newMemberPinger(&memberPinger{
		pings: p, raft: e.raft, configuration: e.configuration, quorum: monitor, space: n.space,
		condition: n.peerSide.condition, onDivergence: c.Events.StateDiffers,
	})
	e.memberWatch = &memberWatch{
		raft: e.raft, configuration: e.configuration, transport: e.transport, record: n.record, roster: n.roster, hosts: n.hosts,
		onRemoved: c.OnRemoved, left: map[string]bool{},
	}
	e.locator = newLocator(&locator{
		listed: member.ListOf(c.PeerList, c.Join), peers: c.Peers, record: n.record, roster: n.roster, transport: e.transport,
		pinger: e.pinger, hint: &e.hint, log: n.log,
	})
	e.leaderLoss = &leaderLoss{
		raft: e.raft, transport: e.transport, self: n.record.id(), voters: e.configuration.votingMembers,
		full: n.space.below.Load, slow: func() bool { return n.disk.slow(time.Now()) }, priority: *c.LeaderPriority,
		ask: p.ask, roundTrip: e.pinger.roundTrip, heartbeat: c.Timings.Heartbeat, lease: c.Timings.Lease, log: n.log,
	}
	e.mainWatch = &mainWatch{
		raft: e.raft, limit: c.StallLimit, progress: c.StateMachine.AppliedIndex, installing: e.transport.Installing,
	}
	e.quorumWatch = &quorumWatch{
		raft: e.raft, transport: e.transport, configuration: e.configuration, record: n.record, hint: &e.hint, monitor: monitor,
		clusterCheck: &n.clusterCheck, gatherer: e.gatherer, log: n.log,
		leaders: leaderChanges{changed: c.Events.LeaderChanged}, looked: e.memberWatch.checkRaft,
	}
}

// lead builds what a leader does, and what changes who leads and who is a member.
func (e *engine) lead(stuck *stuckTransfer) {
	n, c := e.node, e.node.cfg
	e.check = voterCheck{
		raft: e.raft, transport: e.transport, roster: n.roster, registry: c.Registry, heartbeat: c.Timings.Heartbeat,
	}
	e.transfer = &leaderTransfer{
		raft: e.raft, configuration: e.configuration, record: n.record, roster: n.roster, peers: c.Peers, gatherer: e.gatherer,
		pinger: e.pinger, check: e.check, space: n.space, stuck: stuck, log: n.log,
		disk: n.disk, transport: e.transport, election: c.Timings.Election, priority: *c.LeaderPriority,
	}
	e.membership = &membership{
		ctx: n.lifecycle.ctx, gatherer: e.gatherer, state: c.StateMachine, configuration: e.configuration,
		record: n.record, roster: n.roster, peers: c.Peers, check: e.check, transfer: e.transfer, log: n.log,
	}
	configurator := configurator{n.lifecycle.ctx, e.raft, e.transport, e.transfer}
	// A leader's table is the newest, and the roster's additions do not count.
	reconciler := member.Reconciler{
		Self: n.ID(), Raft: configurator, Members: c.Registry.Members,
		AppliedIndex: e.pinger.appliedIndex, Commit: e.raft.CommitIndex,
		Match:   func(id raft.ServerID) uint64 { return e.transport.Match(id, e.raft.CurrentTerm()) },
		MayVote: e.check.mayVote, Promote: e.membership.promote, Format: c.Registry.Format, RaiseFormat: e.membership.raiseFormat,
		Stable: c.PromoteAfter, Logger: n.log,
	}
	e.leadership = &leadership{
		raft: e.raft, record: n.record, registry: c.Registry, state: c.StateMachine, now: c.Now, batcher: e.batcher,
		transfer: e.transfer, configurator: configurator, reconciler: reconciler, stuck: stuck,
		stuckCommit:      &stuckCommitWatch{raft: e.raft, transport: e.transport, configuration: e.configuration, log: n.log},
		recoverySnapshot: recoverySnapshot{e.raft, n.store, c.StateMachine, n.log},
		signal:           e.signal, log: n.log,
	}
}

// startReads starts linearizable reads.
func (e *engine) startReads() (err error) {
	n, c := e.node, e.node.cfg
	e.local = readindex.NewLocal(leaderReads{e.raft, e.transport, e.configuration, e.leadership}, readindex.LocalConfig{})
	e.reads, err = readindex.New(readindex.Config{
		Self: n.record.name(), Leaders: e.gatherer, Local: e.local, Remote: remoteReads{n.roster, c.Peers}, State: c.StateMachine, Limit: c.LeaderWait,
	})
	return err
}

// startLoops starts the node's own goroutines.
func (e *engine) startLoops() {
	l := e.node.lifecycle
	l.run(e.quorumWatch.run)
	l.run(e.memberWatch.run)
	l.run(e.leaderLoss.run)
	l.run(e.mainWatch.run)
	l.run(e.pinger.run)
	l.run(e.locator.run)
	l.run(e.witness.keep)
	l.run(func(ctx context.Context) {
		greetMembers(ctx, e.configuration, e.node.record, e.transport, l, pausesOf(e.node.cfg))
	})
	l.run(e.leadership.monitor)
	l.run(e.announcer.run)
	l.run(e.snapshotByBytes)
}
