package transport

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/test/tier"
)

var discard = slog.New(slog.DiscardHandler)

// counter is a state machine that counts applied entries.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Apply(*raft.Log) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func (c *counter) applied() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("none in this test") }
func (c *counter) Restore(io.ReadCloser) error         { return fmt.Errorf("none in this test") }

// node is one Raft node of a test cluster.
type node struct {
	t         *testing.T
	tag       string
	book      *book
	change    func(*Config)
	store     *raft.InmemStore
	fsm       *counter
	transport *Transport
	raft      *raft.Raft
}

// startCluster starts nodes A, B and C, each with the change that its tag gets.
func startCluster(t *testing.T, change func(tag string) func(*Config)) []*node {
	t.Helper()
	b := newBook()
	var servers []raft.Server
	var nodes []*node
	for _, tag := range []string{"A", "B", "C"} {
		servers = append(servers, raft.Server{ID: raft.ServerID(idOf(tag)), Address: Address(raft.ServerID(idOf(tag)))})
		n := &node{t: t, tag: tag, book: b, store: raft.NewInmemStore()}
		if change != nil {
			n.change = change(tag)
		}
		n.transport = start(t, b, tag, n.change)
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		must(t, raft.BootstrapCluster(n.config(), n.store, n.store, raft.NewInmemSnapshotStore(), n.transport,
			raft.Configuration{Servers: servers}))
		n.up()
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			n.down()
		}
	})
	return nodes
}

func (n *node) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(idOf(n.tag))
	// Long timeouts: an entry must be committed although a busy test machine pauses.
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 2*time.Second, 2*time.Second, 2*time.Second
	c.CommitTimeout = 10 * time.Millisecond
	c.Logger = raftlogger.New(discard)
	return c
}

func (n *node) up() {
	n.t.Helper()
	n.fsm = &counter{}
	r, err := raft.NewRaft(n.config(), n.fsm, n.store, n.store, raft.NewInmemSnapshotStore(), n.transport)
	must(n.t, err)
	n.raft = r
}

func (n *node) down() {
	if n.raft == nil {
		return
	}
	f := n.raft.Shutdown()
	_ = n.transport.Close()
	if err := f.Error(); err != nil {
		n.t.Errorf("shutting down %s: %v", n.tag, err)
	}
	n.raft = nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leader waits until a node leads and its log takes an entry.
func leader(t *testing.T, nodes []*node) (leader *node) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		for _, n := range nodes {
			if n.raft != nil && n.raft.State() == raft.Leader && n.raft.Apply([]byte("x"), time.Second).Error() == nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// all waits until every node that is up has applied as much as the given one.
func all(t *testing.T, nodes []*node, like *node) {
	t.Helper()
	want := like.fsm.applied()
	for _, n := range nodes {
		if n.raft != nil {
			eventually(t, n.tag+" applies everything", func() bool { return n.fsm.applied() >= want })
		}
	}
}

func TestClusterOverTheTransport(t *testing.T) {
	tier.Long(t)
	ca := newAuthority(t)
	for name, change := range map[string]func(string) func(*Config){
		"plain": nil,
		"TLS":   ca.secured,
		"names and overrides": func(string) func(*Config) {
			return func(c *Config) {
				_, port, _ := net.SplitHostPort(c.Listener.Addr().String())
				// The address in the book is wrong; the override's host is a name.
				c.Listener = elsewhere{c.Listener}
				c.Dial = overrides
				overrides[tagOf(c.LocalID)] = "localhost:" + port
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := startCluster(t, change)
			l := leader(t, nodes)
			for range 20 {
				must(t, l.raft.Apply([]byte("x"), 5*time.Second).Error())
			}
			must(t, l.raft.VerifyLeader().Error())
			all(t, nodes, l)
			for _, n := range nodes {
				addr, id := n.raft.LeaderWithID()
				if string(id) != idOf(l.tag) || string(addr) != idOf(l.tag) {
					t.Errorf("%s says the leader is %s at %s", n.tag, id, addr)
				}
			}
		})
	}
}

// overrides is filled before any node dials.
var overrides = map[string]string{}

func tagOf(id string) string {
	return map[string]string{idOf("A"): "A", idOf("B"): "B", idOf("C"): "C"}[id]
}

// elsewhere is a listener whose Addr is wrong.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return raftAddr("127.0.0.1:1") }

func TestNodeComesBackAtAnotherAddress(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, nil)
	l := leader(t, nodes)
	var moved *node
	for _, n := range nodes {
		if n != l {
			moved = n
		}
	}
	before := moved.transport.stream.cfg.Listener.Addr().String()
	moved.down()
	must(t, l.raft.Apply([]byte("x"), 5*time.Second).Error())
	moved.transport = start(t, moved.book, moved.tag, nil)
	if moved.transport.stream.cfg.Listener.Addr().String() == before {
		t.Skip("the system gave the same port again")
	}
	moved.up()
	all(t, nodes, leader(t, nodes))
}

func TestClusterStaysHealthyAmongStrangers(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, func(string) func(*Config) {
		return func(c *Config) { c.MaxPending = 4 }
	})
	leader(t, nodes)
	for _, n := range nodes {
		for range 20 {
			connect(t, n.transport) // Silent.
			stranger := connect(t, n.transport)
			g := greetingOf(t, "A", n.tag)
			g.Cluster[3]++
			_, _ = stranger.Write(append(encode(g), vote...))
		}
		// All must greet again among them.
		n.transport.CloseStreams()
	}
	l := leader(t, nodes)
	must(t, l.raft.VerifyLeader().Error())
	all(t, nodes, l)
}

// TestImpostorCannotDisturb starts a second process with a follower's id, at
// another address: it is refused by those who can ask the follower itself.
func TestImpostorCannotDisturb(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, nil)
	l := leader(t, nodes)
	told := make(chan Status, 100)
	mine := newBook()
	for _, n := range nodes {
		p, _ := n.book.Lookup(idOf(n.tag))
		mine.put(p)
	}
	impostor := start(t, mine, "B", func(c *Config) { c.OnRefused = func(_ Peer, s Status) { told <- s } })
	err := impostor.NetworkTransport.TimeoutNow(raft.ServerID(idOf("C")), "", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
	if err == nil {
		t.Fatal("the impostor's message was taken")
	}
	if got := <-told; got != Impostor {
		t.Errorf("told %v", got)
	}
	must(t, l.raft.VerifyLeader().Error())
}

// TestHeartbeatsAreOnTheMainPath sends a heartbeat as the library does, and sees
// it come out where every other message does.
func TestHeartbeatsAreOnTheMainPath(t *testing.T) {
	b := newBook()
	a, sender := start(t, b, "A", nil), start(t, b, "B", nil)
	a.SetHeartbeatHandler(func(raft.RPC) { t.Error("the heartbeat took the fast path") })
	sent := make(chan error, 1)
	go func() {
		req := &raft.AppendEntriesRequest{Term: 7, RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(idOf("B")), Addr: []byte(idOf("B"))}}
		sent <- sender.AppendEntries(raft.ServerID(idOf("A")), "", req, &raft.AppendEntriesResponse{})
	}()
	rpc := <-a.Consumer()
	if req, ok := rpc.Command.(*raft.AppendEntriesRequest); !ok || req.Term != 7 {
		t.Errorf("got %+v", rpc.Command)
	}
	rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
	must(t, <-sent)
}

func TestCloseFreesWhoeverWaits(t *testing.T) {
	b := newBook()
	deaf, sender := start(t, b, "A", nil), start(t, b, "B", func(c *Config) { c.Timeout = time.Hour })
	sent := make(chan error, 1)
	go func() {
		sent <- sender.NetworkTransport.TimeoutNow(raft.ServerID(idOf("A")), "", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{})
	}()
	eventually(t, "the connection", func() bool { return open(deaf) == 1 && open(sender) == 1 })
	must(t, sender.Close())
	if err := <-sent; err == nil {
		t.Error("the message was answered")
	}
	// The other side waits for a Raft that takes no messages; it is freed too.
	must(t, deaf.Close())
	if open(sender) != 0 || open(deaf) != 0 {
		t.Errorf("%d and %d connections are open", open(sender), open(deaf))
	}
	must(t, sender.Close())
}

func TestDisconnectClosesOneNodesConnections(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", nil)
	for _, tag := range []string{"B", "C"} {
		tr := start(t, b, tag, nil)
		ctx := t.Context()
		_, err := tr.stream.dial(ctx, idOf("A"), forRaft, 0)
		must(t, err)
	}
	eventually(t, "both connections", func() bool { return open(a) == 2 })
	a.Disconnect(raft.ServerID(idOf("B")))
	if open(a) != 1 {
		t.Errorf("%d connections are open", open(a))
	}
}

func open(t *Transport) int {
	t.stream.conns.mu.Lock()
	defer t.stream.conns.mu.Unlock()
	return len(t.stream.conns.open)
}
