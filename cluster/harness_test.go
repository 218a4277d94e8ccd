package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/test/tier"
)

// TestMain looks for goroutines left behind. Raft may forget a future when it is
// shut down (hashicorp/raft issue 498); who waits for one is left behind on
// purpose, by these two functions and by no other.
func TestMain(m *testing.M) {
	tier.Overlap()
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/idnode/idnode/cluster/raftguard.Await.func1"),
		goleak.IgnoreAnyFunction("github.com/idnode/idnode/cluster/commit.(*RaftLog).Append.func1"),
	)
}

// The state machine and the calls between nodes fit the interfaces they are
// written against.
var (
	_ cluster.StateMachine = (*fsm.State)(nil)
	_ cluster.Registry     = (*fsm.State)(nil)
	_ cluster.Peers        = (*peer.Pool)(nil)
	_ peer.Node            = peerSide{}
	_ peer.Host            = peerSide{}
)

// peerSide adds every node that is where it says: who may join is not the cluster's to say.
type peerSide struct{ *cluster.PeerSide }

// HandleJoin implements peer.Node.
func (p peerSide) HandleJoin(ctx context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	if err := p.Prove(ctx, req.GetMember()); err != nil {
		return nil, err
	}
	return p.AddMember(ctx, &raftlogv1.MemberAdd{Member: req.GetMember()}, nil)
}

// server is one node with everything it needs, in this process.
type server struct {
	t     *testing.T
	tag   string
	dir   string
	link  *networkFault
	grpc  string
	raft  string
	node  *cluster.Node
	state *fsm.State
	pool  *peer.Pool
	api   *grpc.Server
	// lookup, if set, is the name service of a node that others reach as TAG.test.
	lookup func(ctx context.Context, host string) ([]string, error)
	// tune changes the configuration at each open, before the test's own change; may
	// be nil.
	tune func(*cluster.Config)
}

// testHeartbeat leaves room for the race detector on a busy machine.
var testHeartbeat = orDefault(500 * time.Millisecond)

// orDefault returns heartbeat, or the program's own if that is to be tested.
func orDefault(heartbeat time.Duration) time.Duration {
	if os.Getenv("IDNODE_TEST_DEFAULTS") != "" {
		return 0
	}
	return heartbeat
}

// testCallLimit is how long a call waits, with a leader and without. An election whose
// first votes are split takes longer than the default.
const testCallLimit = 10 * time.Second

// patient is for tests in which another leader would be another case: a machine that
// stands still for half a second must not cause an election.
func patient(c *cluster.Config) {
	c.Heartbeat = time.Second
}

func logger(t *testing.T, tag string) *slog.Logger {
	if os.Getenv("IDNODE_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("tag", tag)
}

func newServer(t *testing.T, tag string) *server {
	return &server{
		t: t, tag: tag, dir: filepath.Join(t.TempDir(), "data"), link: newNetworkFault(),
		grpc: freeport.For(t), raft: freeport.For(t),
	}
}

// open builds the node and serves its calls; it does not start it.
func (s *server) open(change func(*cluster.Config)) {
	s.t.Helper()
	log := logger(s.t, s.tag)
	s.state = fsm.New(fsm.Config{})
	state := s.state
	var node *cluster.Node
	dial := s.link.dial
	if s.lookup != nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) { return node.DialContext(ctx, address) }
	}
	s.pool = peer.NewPool(peer.PoolConfig{
		DialMember:  func(ctx context.Context, id []byte) (net.Conn, error) { return node.DialMember(ctx, id) },
		DialContext: dial, Logger: log,
	})
	c := cluster.Config{
		DataDir: s.dir, Tag: s.tag, RaftListen: s.raft, Advertise: cluster.Addresses{GRPC: s.grpc, Raft: s.raft},
		Network: wrappedTCP(s.link.wrap), Heartbeat: testHeartbeat, PromoteAfter: 300 * time.Millisecond,
		StateMachine: state, TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() }, Registry: state,
		Peers: s.pool, Logger: log, LeaderWait: testCallLimit, CallLimit: testCallLimit, LeaderPriority: 1,
		OnAnnounce: func(*raftlogv1.MemberResult) {},
		ServeCalls: func(calls net.Listener) { peer.NewServer(peerSide{node.PeerSide()}, nil).Serve(calls) },
		Events: cluster.Events{
			Groups: commit.Events{
				Cut: func(int, time.Duration) {}, Answered: func(int, int, int, time.Duration) {},
				GivenUp: func(int, error) {},
			},
			Entries:   commit.BatcherEvents{Appending: func() {}, Appended: func(int, int, int, time.Duration, error) {}},
			Forwarded: func() {}, Received: func() {}, LeaderChanged: func() {}, StateDiffers: func() {}, SnapshotRefused: func() {},
		},
	}
	if s.lookup != nil {
		c.LookupHost, c.Advertise = s.lookup, cluster.Addresses{GRPC: s.named(s.grpc), Raft: s.named(s.raft)}
	}
	for _, f := range []func(*cluster.Config){s.tune, change} {
		if f != nil {
			f(&c)
		}
	}
	var err error
	if node, err = cluster.Open(c); err != nil {
		s.t.Fatalf("%s: %v", s.tag, err)
	}
	s.node = node
	s.api = grpc.NewServer()
	peer.RegisterJoining(s.api, peerSide{node.PeerSide()}, nil)
	s.serve()
}

// named returns an address of the node under its name.
func (s *server) named(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(s.tag+".test", port)
}

func (s *server) serve() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.grpc)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = s.api.Serve(wrappedListener{l, s.link.wrap}) }()
}

func (s *server) start() {
	s.t.Helper()
	if err := s.tryStart(); err != nil {
		s.t.Errorf("%s: Start: %v", s.tag, err)
	}
}

// startDoomed starts a node that the others refuse: they may do so before Start has
// returned, which then says why the node has ended.
func (s *server) startDoomed() {
	s.t.Helper()
	if err := s.tryStart(); err != nil && !errors.Is(err, s.node.Err()) {
		s.t.Errorf("%s: Start: %v", s.tag, err)
	}
}

func (s *server) tryStart() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.node.Start(ctx)
}

// stop ends the node; hard leaves out all manners.
func (s *server) stop(hard bool) {
	s.t.Helper()
	if s.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if hard {
		cancel()
	}
	if hard {
		s.api.Stop()
	}
	if err := s.node.Shutdown(ctx); err != nil {
		s.t.Errorf("%s: Shutdown: %v", s.tag, err)
	}
	s.api.Stop()
	s.pool.Close()
	s.node = nil
}

// network is servers that know each other by a list of peers.
type network struct {
	t       *testing.T
	servers []*server
	peers   map[string]string
}

// newNetwork makes nodes A, B, … that are not open yet. tune, if there is one, changes
// the configuration of each.
func newNetwork(t *testing.T, size int, tune ...func(*cluster.Config)) *network {
	n := &network{t: t, peers: map[string]string{}}
	for i := range size {
		s := newServer(t, string(rune('A'+i)))
		if len(tune) > 0 {
			s.tune = tune[0]
		}
		n.servers = append(n.servers, s)
		n.peers[s.tag] = s.grpc
	}
	t.Cleanup(n.stopAll)
	return n
}

func (n *network) stopAll() {
	var wg sync.WaitGroup
	for _, s := range n.servers {
		s.link.heal()
		wg.Go(func() { s.stop(true) })
	}
	wg.Wait()
}

// run opens and starts the servers.
func (n *network) run(servers ...*server) {
	n.t.Helper()
	for _, s := range servers {
		s.open(func(c *cluster.Config) { c.PeerList = n.peers })
	}
	startAll(servers...)
}

func startAll(servers ...*server) {
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(s.start)
	}
	wg.Wait()
}

// startNetwork returns a running cluster with a leader, whose nodes know all members.
func startNetwork(t *testing.T, size int, tune ...func(*cluster.Config)) *network {
	t.Helper()
	n := newNetwork(t, size, tune...)
	n.run(n.servers...)
	n.leader()
	for _, s := range n.servers {
		eventually(t, s.tag+" to know all members", func() bool { return len(s.state.Members()) == size })
	}
	return n
}

// leader waits for a leader that all running nodes, but those cut off, agree on.
func (n *network) leader() *server {
	n.t.Helper()
	var leader *server
	eventually(n.t, "a leader", func() bool {
		tag := ""
		for _, s := range n.servers {
			if s.node == nil || s.link.isCut() {
				continue
			}
			known := s.node.Status().LeaderTag
			if known == "" || tag != "" && known != tag {
				return false
			}
			tag = known
		}
		leader = n.server(tag)
		return leader != nil && leader.node != nil && !leader.link.isCut() && leads(leader)
	})
	return leader
}

// leads reports whether s leads, as far as it knows.
func leads(s *server) bool {
	status := s.node.Status()
	return status.LeaderTag != "" && status.LeaderTag == status.Tag
}

// leads waits until s leads.
func (n *network) leads(s *server) {
	n.t.Helper()
	eventually(n.t, s.tag+" to lead", func() bool {
		if err := s.node.Err(); err != nil {
			n.t.Fatalf("%s ended: %v", s.tag, err)
		}
		_, _ = s.transfer(s.tag)
		return leads(s)
	})
}

// transferLeadership transfers leadership through s, to tag or to whom Raft chooses, and returns
// who got it. Raft gives each half of it one election timeout, which a write to a slow
// disk outlasts, so it is tried again.
func (s *server) transferLeadership(tag string) (target string) {
	s.t.Helper()
	eventually(s.t, "transfer of leadership", func() (ok bool) {
		var err error
		if target, err = s.transfer(tag); err != nil {
			s.t.Logf("%s: Transfer: %v", s.tag, err)
		}
		return err == nil
	})
	return target
}

func (s *server) transfer(tag string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	return s.node.Transfer(ctx, tag)
}

func (n *network) server(tag string) *server {
	for _, s := range n.servers {
		if s.tag == tag {
			return s
		}
	}
	return nil
}

// others returns the servers but s.
func (n *network) others(s *server) []*server {
	var out []*server
	for _, o := range n.servers {
		if o != s {
			out = append(out, o)
		}
	}
	return out
}

// agree waits until all running nodes have the same state.
func (n *network) agree() {
	n.t.Helper()
	eventually(n.t, "equal states", func() bool {
		var index, hash uint64
		for i, s := range n.servers {
			if s.node == nil {
				continue
			}
			at, h := s.state.Hash()
			if i > 0 && index != 0 && (at != index || h != hash) {
				return false
			}
			index, hash = at, h
		}
		return true
	})
}

// eventually polls until ok, for at most 20 seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 20 s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// next takes one value of an identity through the node.
func (s *server) next(ctx context.Context, name string) (int64, error) {
	answer, err := s.node.Propose(ctx, op.Envelope{Database: "default"}.EncodeIdentityNext(name, 1, "/"))
	if err != nil {
		return 0, err
	}
	result, err := op.DecodeResult(answer)
	if err != nil {
		return 0, err
	}
	values := result.GetIdentityNext().GetValues()
	if len(values) != 1 {
		return 0, fmt.Errorf("got %v", result)
	}
	return values[0].GetFirst(), nil
}

// mustNext is next at a node that serves callers, or has started and is about to.
func (s *server) mustNext(name string) (v int64) {
	s.t.Helper()
	eventually(s.t, s.tag+" serves callers", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), testCallLimit)
		defer cancel()
		var err error
		v, err = s.next(ctx, name)
		var refused *outcome.Error
		if errors.As(err, &refused) && refused.Reason == outcome.Starting {
			return false
		}
		if err != nil {
			s.t.Fatalf("%s: next: %v", s.tag, err)
		}
		return true
	})
	return v
}

// eventuallyNext is next at a node that may refuse at once, since it has been without a
// leader for longer than a call waits. It returns how many tries failed, too: each may
// have taken a value.
func (s *server) eventuallyNext(name string) (v int64, failed int64) {
	s.t.Helper()
	eventually(s.t, "value at "+s.tag, func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), testCallLimit)
		defer cancel()
		var err error
		if v, err = s.next(ctx, name); err != nil {
			failed++
		}
		return err == nil
	})
	return v, failed
}

// wantOutcome checks what an error says about the proposal.
func wantOutcome(t *testing.T, err error, want outcome.Outcome, reason outcome.Reason) {
	t.Helper()
	var e *outcome.Error
	if !errors.As(err, &e) || e.Outcome != want || e.Reason != reason {
		t.Errorf("error is %v, want %v: %v", err, want, reason)
	}
}
