package node

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/server/tlsconf"
)

// assemble makes the parts, from the ground floor up. The caller releases what was made if it
// fails.
func (n *Node) assemble() error {
	if err := n.checkFirstStart(); err != nil {
		return err
	}
	var err error
	if n.certs, err = loadCertificates(n.cfg, n.log, n.clusterID); err != nil {
		return err
	}
	n.metrics = metrics.New(n.opts.Version)
	n.callers = newCallers(n.cfg, n.metrics, n.log)
	held := reserve.NewHeld()
	n.state = fsm.New(fsm.Config{
		Logger: n.log, AnsweredAgain: n.metrics.AnsweredAgain, EtagFloors: n.etagFloors, HiLoTaken: held.Discard,
	})
	if err := n.openCluster(); err != nil {
		return err
	}
	if n.cfg.CheckGuard(false) != nil {
		n.log.Warn("no administrators are named (--admin): the node goes on only if its cluster has roles")
	}
	if elsewhere := n.cfg.OwnEntryElsewhere(); elsewhere != "" {
		n.log.Warn(elsewhere)
	}
	if err := n.openEtags(); err != nil {
		return err
	}
	var reserves service.Reserves
	if n.cfg.ReserveFor > 0 {
		n.reserve = reserve.NewKeeper(reserve.Config{Held: held, Cluster: n.cluster, For: n.cfg.ReserveFor, Tag: n.cluster.Tag, Logger: n.log})
		reserves = n.reserve
	}
	n.readiness = &readiness{cfg: n.cfg, cluster: n.cluster, state: n.state, keeper: n.keeper, health: grpcapi.NewHealth(n.Alive)}
	auditor, err := n.openAudit()
	if err != nil {
		return err
	}
	n.service = service.New(service.Config{
		Reserves: reserves, Proposer: n.opts.Tracing.Proposer(n.cluster), Linearizer: n.cluster, State: n.state, Etags: n.keeper,
		Cluster: clusterView{n.cluster}, Tag: n.cluster.Tag, CaughtUp: n.readiness.started.Load,
		OwnEtags:    func() []etags.Progress { return n.keeper.Progress(n.state.Etags(n.cluster.ID().Bytes())) },
		OwnReserves: n.reserve.Left, ReserveTotal: n.reserve.Total,
		ServerPrefix: n.cfg.ServerPrefix, CallTimeout: n.cfg.CallTimeout, MaxInFlight: n.cfg.MaxInFlight,
		Caller: callerOf, Guarded: n.cfg.Guarded(), Admins: n.cfg.Admin,
		Hosts: append(slices.Clone(n.cfg.HTTPHost), n.cfg.AdvertiseHTTP, n.cfg.AdvertiseGRPC),
		Audit: auditor, Version: n.opts.Version, Logger: n.log, Events: n.events(),
	})
	n.openServer()
	if n.listener, err = n.listen(n.cfg.GRPC); err != nil {
		return err
	}
	if err := n.openHTTP(); err != nil {
		return err
	}
	return n.openMetrics()
}

func (n *Node) events() service.Events {
	events := n.metrics.Service()
	if n.cfg.HTTP != "" { // Only the page shows names.
		events.Used = n.busiest.Count
	}
	return events
}

// checkFirstStart refuses a first start that openCluster would refuse, before the data
// directory is made. If the directory exists, openCluster decides.
func (n *Node) checkFirstStart() error {
	if n.opts.Storage != nil {
		return nil
	}
	if _, err := os.Stat(n.cfg.DataDir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return n.cfg.CheckFirstStart()
}

func (n *Node) openCluster() error {
	n.pool = peer.NewPool(peer.PoolConfig{
		DialMember:  func(ctx context.Context, id []byte) (net.Conn, error) { return n.cluster.DialMember(ctx, id) },
		Credentials: n.certs.peerCredentials(), Dial: n.cfg.Tuning.DialPeer,
		DialContext: func(ctx context.Context, address string) (net.Conn, error) {
			return n.cluster.DialContext(ctx, address)
		},
		Traceparent: n.opts.Tracing.Traceparent(), Logger: n.log,
	})
	var machine cluster.StateMachine = n.state
	if n.opts.Watch != nil {
		machine = n.opts.Watch(n.state)
	}
	c, tuned := n.cfg, n.cfg.Tuning
	var err error
	n.cluster, err = cluster.Open(cluster.Config{
		Storage: n.opts.Storage, Process: n.opts.Process, Network: n.opts.Network, LookupHost: n.opts.LookupHost,
		DataDir: c.DataDir, Tag: c.Tag, RaftListen: c.Raft,
		Advertise: cluster.Addresses{GRPC: c.AdvertiseGRPC, Raft: c.AdvertiseRaft, HTTP: c.AdvertiseHTTP},
		PeerList:  c.Peer, Join: c.Join, JoinToken: c.JoinToken, Watcher: c.Watcher, DialRaft: tuned.Dial,
		LogFormat: uint32(c.MaxLogFormat), TrustData: c.TrustData, ClusterID: c.ClusterID,
		TLS: n.certs.raftTLS(), Version: n.opts.Version, CertificateEnds: n.certs.ends(), Figures: n.figures,
		Heartbeat:        c.HeartbeatTimeout,
		SnapshotInterval: tuned.SnapshotInterval, SnapshotThreshold: tuned.SnapshotThreshold, SnapshotBytes: int64(c.SnapshotBytes),
		TrailingLogs: tuned.TrailingLogs,
		Now:          n.opts.Now, LeaderWait: tuned.LeaderWait, StallLimit: c.StorageWatchdog, LeaderPriority: uint32(c.LeaderPriority),
		MinFreeBytes: uint64(c.StorageLowMark), Room: n.opts.Room,
		StateMachine: machine, TakeSnapshot: func() cluster.Snapshot { return n.state.Snapshot() }, Registry: n.state,
		Peers: n.pool, ServeCalls: func(calls net.Listener) { n.members.Serve(calls) },
		Logger: n.log, OnAnnounce: n.announced, CallLimit: c.CallTimeout,
		Events: n.opts.Tracing.Cluster(n.metrics.Cluster()),
	})
	switch {
	case err != nil:
		return err
	case len(n.cluster.ClusterID()) == 0:
		return c.CheckFirstStart()
	case n.certs == nil:
		return nil
	}
	// The certificate was first read before the cluster was known.
	return n.certs.check(n.certs.Leaf())
}

func (n *Node) clusterID() string {
	if n.cluster == nil {
		return ""
	}
	return hex.EncodeToString(n.cluster.ClusterID())
}

func (n *Node) leader() (term uint64, address string) {
	if n.cluster == nil {
		return 0, ""
	}
	term, leader := n.cluster.Leader()
	return term, leader.GetHttpAddress()
}

// announced passes the cluster's record of this node's etags on to the keeper. The cluster
// node announces itself only after Start, when there is a keeper. The counters come from the
// node's own state, which has the announcement: they are too many for an answer.
func (n *Node) announced(m *raftlogv1.MemberResult) {
	known := n.state.Etags(m.GetMember().GetId())
	if known == nil {
		known = &raftlogv1.EtagRecord{}
	}
	known.Start, known.Clean = m.GetEtags().GetStart(), m.GetEtags().GetClean()
	n.keeper.Announced(known)
}

// etagFloors passes the floors of a node's etags on, if it is this node. Like announced it is
// called only after Start.
func (n *Node) etagFloors(state *raftlogv1.EtagRecord) {
	if bytes.Equal(state.GetNode(), n.cluster.ID().Bytes()) {
		n.keeper.Floors(state)
	}
}

func (n *Node) openEtags() error {
	id := n.cluster.ID().Bytes()
	// The tag is confirmed after the counters were made, and needed to use them.
	_, used := n.cluster.Tag()
	var store etag.Store
	var err error
	if n.opts.Storage != nil {
		store, err = n.opts.Storage.OpenEtags(id, used)
	} else {
		store, err = openEtagFile(n.cfg.DataDir, id, used)
	}
	if err != nil {
		return err
	}
	n.counters, err = etag.Open(store, etag.Config{BlockSize: n.cfg.Tuning.EtagBlock, MaxDatabases: n.maxDatabases, Logger: n.log})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	n.keeper = etags.NewKeeper(etags.Config{
		Counters: n.counters, Proposer: n.cluster, NodeID: id, StartWait: n.cfg.Tuning.StartWait,
		ClusterCheck: n.cluster.ClusterCheck, Logger: n.log,
	})
	return nil
}

func (n *Node) listen(address string) (lis net.Listener, err error) {
	if n.opts.Network != nil {
		lis, err = n.opts.Network.Listen(address)
	} else {
		lis, err = net.Listen("tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return callersListener{lis, n.callers}, nil
}

func (n *Node) openServer() {
	var creds credentials.TransportCredentials
	var authorize peer.Authorize
	if n.certs != nil {
		creds, authorize = credentials.NewTLS(n.certs.Server()), n.certs.namesMember
	}
	creds = n.callers.grpc.Credentials(creds)
	cfg := grpcapi.Config{
		Logger: n.log, Observer: n.metrics, ClusterID: n.clusterID, StartSpan: n.opts.Tracing.Exchange(),
		Options: n.opts.Tracing.ServerOptions(),
	}
	n.server = grpcapi.NewServer(cfg, creds, n.service, n.readiness.health)
	peers := peerSide{n.cluster.PeerSide(), n.service}
	peer.RegisterJoining(n.server, peers, authorize)
	n.members = peer.NewServer(peers, n.opts.Tracing.Peer(), grpcapi.MemberOptions(cfg)...)
}

// openAudit returns nil for a node without an audit log.
func (n *Node) openAudit() (admission.Auditor, error) {
	if n.cfg.Audit == "" {
		return nil, nil
	}
	log, err := audit.Open(n.cfg.Audit, n.log)
	var inaccessible *fs.PathError
	switch {
	case errors.As(err, &inaccessible):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see 'idnode audit verify', keep the file, and begin another", err)
	}
	n.audit, n.readiness.audit = log, log
	return log, nil
}

func callerOf(ctx context.Context) admission.Caller { return grpcapi.CallerOf(ctx, tlsconf.Principal) }

func (n *Node) maxDatabases() int {
	limit, _ := n.state.Setting("max-databases")
	return int(limit.Value)
}
