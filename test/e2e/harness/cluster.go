package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/edge"
)

// Config says what cluster to start.
type Config struct {
	// Size is the number of nodes; 3 if zero.
	Size int
	// Flags are further flags of `idnode serve`, the same for all nodes.
	Flags []string
	// Certs is a directory with certificates made by `idnode certs`; empty for
	// plain connections.
	Certs string
	// Program is the program to run; that of Binary if empty.
	Program string
	// Direct leaves the relays out, so that nodes reach each other where they
	// say they are.
	Direct bool
	// Domain makes the nodes say that they are at TAG.Domain, for a name service to resolve.
	Domain string
	// Tuning is what no flag changes.
	Tuning failpoint.Tuning
}

// Cluster is a set of idnode processes with a relay on every directed edge
// between the first nodes.
type Cluster struct {
	Nodes []*Node
	cfg   Config
	// dir holds the nodes' data directories and logs.
	dir string
	// edges holds the two relays of each directed edge by (from, to).
	edges map[[2]int][]*edge.Proxy
	// run records what is done to the cluster; nil if nothing does.
	run *Run
}

// Node is one node of a cluster: its addresses, data and present process.
type Node struct {
	Tag        string
	GRPC, Raft string
	HTTP       string
	DataDir    string
	Process    *Process
	// Program is the program of its next start; that of the cluster if empty.
	Program string
	// Env are further variables of its environment, and Tuning what no flag changes, for
	// its next start; first that of the cluster.
	Env    []string
	Tuning failpoint.Tuning
	// under are the commands that run its program, each with its arguments.
	under []string
	*Client
	cluster *Cluster
	index   int
	// place holds the flags with which a later node finds its place; the first
	// nodes have none, and are given the list of peers.
	place []string
	// disk is the node's own, where the test gave it one.
	disk *Disk
	// cert names the certificate the node shows; empty for that of its tag.
	cert string
	// contained says that the node runs in a container, and has no process here.
	contained bool
}

// running says whether the node runs, as far as is known here.
func (n *Node) running() bool { return n.contained || n.Process.Running() }

// StartCluster starts a cluster and waits until every node has a quorum.
func StartCluster(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	c := NewCluster(t, cfg)
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	return c
}

// NewCluster prepares a cluster without starting a process.
func NewCluster(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if cfg.Size == 0 {
		cfg.Size = 3
	}
	c := &Cluster{cfg: cfg, edges: make(map[[2]int][]*edge.Proxy)}
	c.dir = t.TempDir()
	for i := range cfg.Size {
		tag := string(rune('A' + i))
		n := &Node{Tag: tag, DataDir: filepath.Join(c.dir, tag), Tuning: cfg.Tuning, cluster: c, index: i}
		n.Move(t)
		c.Nodes = append(c.Nodes, n)
	}
	for i := range c.Nodes {
		for j, to := range c.Nodes {
			if i != j && !cfg.Direct {
				c.edges[[2]int{i, j}] = []*edge.Proxy{relay(t, to.Raft), relay(t, to.GRPC)}
			}
		}
	}
	return c
}

func relay(t testing.TB, target string) *edge.Proxy {
	t.Helper()
	p, err := edge.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Args are the arguments of the node's `idnode serve`.
func (n *Node) Args() []string {
	args := []string{
		"serve", "--data-dir", n.DataDir,
		"--grpc", n.GRPC, "--raft", n.Raft, "--http", n.HTTP,
	}
	if n.Tag != "" {
		args = append(args, "--tag", n.Tag)
	}
	args = append(args, n.place...)
	if n.place == nil && n.cluster.cfg.Size == 1 {
		args = append(args, "--single-node")
	}
	if n.place == nil {
		for _, peer := range n.cluster.Nodes[:n.cluster.cfg.Size] {
			args = append(args, "--peer", peer.Tag+"="+peer.named(peer.GRPC))
		}
	}
	if n.cluster.cfg.Domain != "" {
		args = append(args, "--advertise-raft", n.named(n.Raft))
	}
	if certs := n.cluster.cfg.Certs; certs != "" {
		cert := cmp.Or(n.cert, n.Tag)
		args = append(
			args, "--tls-ca", filepath.Join(certs, "ca.crt"),
			"--tls-cert", filepath.Join(certs, cert+".crt"), "--tls-key", filepath.Join(certs, cert+".key"),
		)
		if n.cluster.cfg.Program == "" && !slices.Contains(n.cluster.cfg.Flags, "--admin") {
			args = append(args, "--admin", "*")
		}
	}
	args = append(args, n.cluster.cfg.Flags...)
	// For trying out other settings with the same tests.
	return append(args, strings.Fields(os.Getenv("IDNODE_E2E_FLAGS"))...)
}

// named is an address of the node by its name, where it has one.
func (n *Node) named(address string) string {
	domain := n.cluster.cfg.Domain
	_, port, found := strings.Cut(address, ":")
	if domain == "" || !found {
		return address
	}
	return n.Tag + "." + domain + ":" + port
}

// Start starts the node's process.
func (n *Node) Start(t testing.TB, flags ...string) {
	t.Helper()
	program := cmp.Or(n.Program, n.cluster.cfg.Program)
	if program == "" {
		program = Binary(t)
	}
	command := slices.Concat(n.under, []string{program}, n.Args(), flags)
	n.Process = startProcess(t, command[0], append(slices.Clone(n.Env), n.tuning(t)), n.DataDir+".log", command[1:])
}

// tuning is the variable that changes the node by its Tuning, and leads it over the relays.
func (n *Node) tuning(t testing.TB) string {
	t.Helper()
	tuned := n.Tuning
	tuned.DialPeer = map[string]string{}
	if tuned.Dial = maps.Clone(n.Tuning.Dial); tuned.Dial == nil {
		tuned.Dial = map[string]string{}
	}
	for j, peer := range n.cluster.Nodes[:n.cluster.cfg.Size] {
		if e := n.cluster.edges[[2]int{n.index, j}]; e != nil {
			tuned.Dial[peer.Tag], tuned.DialPeer[peer.Tag] = e[0].Addr(), e[1].Addr()
		}
	}
	text, err := json.Marshal(tuned)
	if err != nil {
		t.Fatal(err)
	}
	return "FAILPOINT_TUNING=" + string(text)
}

// WaitReady waits until the node says that it serves.
func (n *Node) WaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, time.Minute, "node "+n.Tag+" is ready", func(ctx context.Context) error {
		if !n.Process.Running() {
			t.Fatalf("node %s ended:\n%s", n.Tag, n.Process.Tail(40))
		}
		r, err := n.Health.Check(ctx, &healthv1.HealthCheckRequest{})
		if err == nil && r.Status != healthv1.HealthCheckResponse_SERVING {
			err = errors.New(r.Status.String())
		}
		return err
	})
}

// WaitReady waits until every running node is ready.
func (c *Cluster) WaitReady(t testing.TB) {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Process.Running() {
			n.WaitReady(t)
		}
	}
}

// Leader waits until all running nodes agree on a leader and returns it.
func (c *Cluster) Leader(t testing.TB) *Node {
	t.Helper()
	return c.LeaderAmong(t, c.Nodes)
}

// LeaderAmong waits until the running ones of nodes agree on a leader among
// them.
func (c *Cluster) LeaderAmong(t testing.TB, nodes []*Node) *Node {
	t.Helper()
	var leader *Node
	Eventually(t, 20*time.Second, "a leader", func(ctx context.Context) error {
		tags := make(map[string]bool)
		for _, n := range nodes {
			if n.Process.Running() {
				s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
				if err != nil {
					return err
				}
				tags[s.LeaderTag] = true
			}
		}
		if len(tags) != 1 {
			return fmt.Errorf("leaders: %v", tags)
		}
		i := slices.IndexFunc(nodes, func(n *Node) bool { return tags[n.Tag] && n.Process.Running() })
		if i < 0 {
			return fmt.Errorf("leaders: %v", tags)
		}
		leader = nodes[i]
		return nil
	})
	return leader
}

// Others are all nodes but n.
func (c *Cluster) Others(n *Node) []*Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(o *Node) bool { return o == n })
}

// Isolate cuts n off from all other nodes, in both directions.
func (c *Cluster) Isolate(n *Node) {
	for e, relays := range c.edges {
		if e[0] == n.index || e[1] == n.index {
			set(relays, edge.Cut)
		}
	}
	c.run.lost(n)
}

// Reset breaks all connections between n and other nodes; they may connect again.
func (c *Cluster) Reset(n *Node) {
	for e, relays := range c.edges {
		if e[0] != n.index && e[1] != n.index {
			continue
		}
		for _, p := range relays {
			p.Reset()
		}
	}
}

// Narrow makes large messages vanish that a node sends as the leader.
func (c *Cluster) Narrow(n *Node) {
	for e, relays := range c.edges {
		if e[0] == n.index {
			relays[RaftPort].Set(edge.LoseLarge)
		}
	}
}

// CutOneWay makes all that one node sends to another vanish, on the connections
// of both.
func (c *Cluster) CutOneWay(from, to *Node) {
	set(c.edges[[2]int{from.index, to.index}], edge.LoseRequests)
	set(c.edges[[2]int{to.index, from.index}], edge.LoseAnswers)
}

// Port is one of the ports that a node offers to other nodes, as an index of the relays of an edge.
type Port int

// RaftPort carries all that members say to each other, CallersPort what nodes say before they are members.
const (
	RaftPort Port = iota
	CallersPort
)

// CutPort has the connections from one node to a port of another lose what a fault says.
func (c *Cluster) CutPort(from, to *Node, port Port, f edge.Fault) {
	c.edges[[2]int{from.index, to.index}][port].Set(f)
}

// CutBetween cuts two nodes off from each other.
func (c *Cluster) CutBetween(a, b *Node) {
	set(c.edges[[2]int{a.index, b.index}], edge.Cut)
	set(c.edges[[2]int{b.index, a.index}], edge.Cut)
}

// Become makes every edge such a line: see edge.Proxy.
func (c *Cluster) Become(l edge.Line) {
	for _, relays := range c.edges {
		for _, p := range relays {
			p.Become(l)
		}
	}
}

// CutAll cuts every edge.
func (c *Cluster) CutAll() {
	c.setAll(edge.Cut)
	c.run.lost()
}

// Heal heals every edge.
func (c *Cluster) Heal() {
	c.run.back()
	c.setAll(edge.None)
}

func (c *Cluster) setAll(f edge.Fault) {
	for _, relays := range c.edges {
		set(relays, f)
	}
}

func set(relays []*edge.Proxy, f edge.Fault) {
	for _, p := range relays {
		p.Set(f)
	}
}

// Agree waits until all running nodes have the same state hash at the same
// index, and write the same log format.
func (c *Cluster) Agree(t testing.TB) {
	t.Helper()
	Eventually(t, 20*time.Second, "equal state on all nodes", func(ctx context.Context) error {
		seen := make(map[string][]string)
		for _, n := range c.Nodes {
			if !n.Process.Running() {
				continue
			}
			s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
			if err != nil {
				return err
			}
			c.run.member(s)
			state := fmt.Sprintf("index %d hash %016x format %d", s.AppliedIndex, s.StateHash, s.LogFormat)
			seen[state] = append(seen[state], n.Tag)
		}
		if len(seen) != 1 {
			return fmt.Errorf("states: %v", seen)
		}
		return nil
	})
}

// VerifySeries checks that every number of a series is in exactly one state.
func (n *Node) VerifySeries(t testing.TB, series string) {
	t.Helper()
	req := &idnodev1.VerifySeriesRequest{Series: series}
	for {
		res, err := n.Series.VerifySeries(t.Context(), req)
		if req.PageToken = res.GetNextPageToken(); err == nil && req.PageToken != "" {
			continue
		}
		if err != nil || !res.GetOk() {
			t.Errorf("node %s: %v, %v", n.Tag, res, err)
		}
		return
	}
}

// Eventually polls until f succeeds; it fails the test when the time is over.
func Eventually(t testing.TB, within time.Duration, what string, f func(ctx context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), min(5*time.Second, within))
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s: %v", within, what, err)
		}
		<-tick.C
	}
}
