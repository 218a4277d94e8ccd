package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/etag/boltetag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/grpcapi"
	"github.com/idnode/idnode/internal/peer"
	"github.com/idnode/idnode/internal/service"
	"github.com/idnode/idnode/internal/tlsconf"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// etagFile is the name of the etag store in the data directory.
const etagFile = "etags.db"

// assemble makes the parts, from the ground floor up. What it has made when it
// fails is released by its caller.
func (n *Node) assemble() error {
	certificates, err := n.certificates()
	if err != nil {
		return err
	}
	state := fsm.New(fsm.Config{Logger: n.log})
	if err := n.openCluster(state, certificates); err != nil {
		return err
	}
	if err := n.openEtags(); err != nil {
		return err
	}
	n.service, err = service.New(service.Config{
		Proposer: n.cluster, Linearizer: n.cluster, State: state, Etags: n.keeper,
		Cluster: clusterView{n.cluster}, Tag: n.cluster.Tag,
		ServerPrefix: n.cfg.ServerPrefix, CallTimeout: n.cfg.CallTimeout, MaxInFlight: n.cfg.MaxInFlight,
		Version: n.version, Logger: n.log,
	})
	if err != nil {
		return err
	}
	n.openServer(certificates)
	n.listener, err = net.Listen("tcp", n.cfg.GRPC)
	return err
}

// certificates returns nil for a node without TLS.
func (n *Node) certificates() (*tlsconf.Material, error) {
	if !n.cfg.TLS() {
		return nil, nil
	}
	m, err := tlsconf.LoadServer(tlsconf.Files{Cert: n.cfg.TLSCert, Key: n.cfg.TLSKey, CA: n.cfg.TLSCA})
	if err != nil {
		return nil, err
	}
	if !m.HasCA() {
		return nil, tlsconf.ErrNoCA
	}
	if tag := n.cfg.Tag; tag != "" && !tlsconf.NamesTag(m.Leaf(), tag) {
		return nil, fmt.Errorf("the certificate %s does not name node %s: other nodes would refuse it", n.cfg.TLSCert, tag)
	}
	return m, nil
}

func (n *Node) openCluster(state *fsm.State, certificates *tlsconf.Material) error {
	n.pool = peer.NewPool(peer.PoolConfig{
		Introduce: n.introduce, Credentials: peerCredentials(certificates), Dial: n.cfg.DialPeer, Logger: n.log,
	})
	c := n.cfg
	var err error
	n.cluster, err = cluster.Open(cluster.Config{
		DataDir: c.DataDir, Tag: c.Tag, RaftListen: c.Raft,
		Advertise: cluster.Addresses{GRPC: c.AdvertiseGRPC, Raft: c.AdvertiseRaft, HTTP: c.AdvertiseHTTP},
		PeerList:  c.Peer, Join: c.Join, Standby: c.Standby, Watcher: c.Watcher, DialRaft: c.Dial,
		TLS: raftTLS(certificates),
		Timings: cluster.Timings{
			Heartbeat: c.HeartbeatTimeout, Election: c.ElectionTimeout, Lease: c.LeaderLeaseTimeout, Commit: c.CommitTimeout,
		},
		SnapshotInterval: c.SnapshotInterval, SnapshotThreshold: c.SnapshotThreshold, TrailingLogs: c.TrailingLogs,
		LeaderWait: c.LeaderWait, StallLimit: c.StorageWatchdog, MinFreeBytes: uint64(c.StorageLowMark),
		StateMachine: state, TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() }, Registry: state,
		Peers: n.pool, Logger: n.log, OnAnnounce: n.announced,
	})
	return err
}

// introduce is how the node speaks of itself to other nodes. It is called only
// when a call is made, which is after openCluster.
func (n *Node) introduce() peer.Introduction {
	self := n.cluster.Self()
	return peer.Introduction{ClusterID: self.ClusterID, ID: self.ID.Bytes(), Tag: self.Tag}
}

// announced passes on what the cluster knows of this node's etags. The cluster
// node announces itself only after Start, when there is a keeper.
func (n *Node) announced(m *raftlogv1.MemberResult) { n.keeper.Announced(m) }

func (n *Node) openEtags() error {
	id := n.cluster.ID().Bytes()
	// The tag is confirmed after the counters were made, and needed to use them.
	_, used := n.cluster.Tag()
	store, err := boltetag.Open(filepath.Join(n.cfg.DataDir, etagFile), boltetag.Options{NodeID: id, MustExist: used})
	if errors.Is(err, boltetag.ErrMissing) {
		return fmt.Errorf("%w; it holds the node's server-side etags: bring it back from where it went, or remove the member, empty the directory and join under a new tag", err)
	}
	if err != nil {
		return err
	}
	n.counters, err = etag.Open(store, etag.Config{BlockSize: n.cfg.EtagBlockSize, Logger: n.log})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	n.keeper = service.NewEtagKeeper(service.EtagKeeperConfig{
		Counters: n.counters, Proposer: n.cluster, NodeID: id, StartWait: n.cfg.StartWait, Logger: n.log,
	})
	return nil
}

func (n *Node) openServer(certificates *tlsconf.Material) {
	var creds credentials.TransportCredentials
	var authorize peer.Authorize
	if certificates != nil {
		creds, authorize = credentials.NewTLS(certificates.Server()), namesMember
	}
	guard := peer.NewGuard(n.cluster, authorize)
	n.health = grpcapi.NewHealth()
	n.server = grpcapi.NewServer(grpcapi.Config{
		MaxRecvBytes: n.cfg.MaxMessageBytes, MaxStreams: uint32(n.cfg.MaxConcurrentStreams),
		MaxHeaderBytes: uint32(n.cfg.MaxHeaderBytes), HandshakeTimeout: n.cfg.HandshakeTimeout, Logger: n.log,
		Options: []grpc.ServerOption{grpc.ChainUnaryInterceptor(guard.Unary), grpc.ChainStreamInterceptor(guard.Stream)},
	}, creds, n.service, n.health)
	peer.NewServer(n.cluster).Register(n.server)
}

// namesMember says whether the certificate of a call's connection names the
// member with this tag.
func namesMember(ctx context.Context, tag string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return errors.New("the connection is not known")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return errors.New("the connection has no TLS")
	}
	tags := tlsconf.PeerTags(info.State)
	if !slices.Contains(tags, tag) {
		return fmt.Errorf("it names %q", tags)
	}
	return nil
}

// peerCredentials are for dialling the gRPC port of another node, whose
// certificate must name its tag. Of a node that is known only by its address,
// to join through, it must name the host.
func peerCredentials(certificates *tlsconf.Material) func(tag string) credentials.TransportCredentials {
	if certificates == nil {
		return nil
	}
	return func(tag string) credentials.TransportCredentials {
		cfg := certificates.Client("")
		if tag != "" {
			// Only a tag that is none, or a missing CA, fails: neither gets here.
			if named, err := certificates.PeerClient(tag); err == nil {
				cfg = named
			}
		}
		return credentials.NewTLS(cfg)
	}
}

// raftTLS are for both directions of the Raft port.
func raftTLS(certificates *tlsconf.Material) *cluster.TLS {
	if certificates == nil {
		return nil
	}
	return &cluster.TLS{Server: certificates.PeerServer, Client: certificates.PeerClient}
}
