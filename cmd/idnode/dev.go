package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	// maxDevNodes keeps the tags within one letter and the ports in sight.
	maxDevNodes = 9
	// devReady bounds the wait for a leader: elections take about a second, a slow disk some more.
	devReady = time.Minute
	// devStop bounds the end: longer than the sum of a node's own bounds.
	devStop = 30 * time.Second
)

type devOptions struct {
	nodes    int
	dataDir  string
	basePort int
	logLevel string
	// wordy says that the level was asked for.
	wordy bool
}

func newDevCommand(a *app) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process, on loopback, to try things out",
		Long: `Runs a cluster without TLS in one process, until Ctrl-C. Node i listens on
base-port + 10·i (gRPC), +1 (Raft) and +2 (HTTP).

Prints the nodes' addresses, one id of each kind from each node (of the database
samples), the address of the page, and then "ready".
A line "kill A" on the standard input ends node A as kill -9 would, and "start A"
starts it again with its data.

The data is in a temporary folder, which is deleted at the end or, if the process was
killed, when dev is started again. With --data-dir it stays, and the same cluster
starts again from it. The nodes wait for each other longer than those of 'serve'.`,
		Example: `  idnode dev
  idnode dev --nodes 5 --data-dir ./data --base-port 9400`,
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 3, "how many nodes, 1 to 9")
	f.StringVar(&o.dataDir, "data-dir", "", "folder for the data, kept at the end (default a temporary one)")
	f.IntVar(&o.basePort, "base-port", 7400, "gRPC port of the first node")
	f.StringVar(&o.logLevel, "log-level", "warn", "what the nodes log: debug, info, warn or error")
	cmd.RunE = a.enter(func(cmd *cobra.Command, _ []string) error {
		if err := mayRunNodes("dev"); err != nil {
			return err
		}
		o.wordy = f.Changed("log-level")
		return o.run(cmd.Context(), a)
	})
	return cmd
}

// run runs the cluster until ctx ends or a node ends by itself.
func (o *devOptions) run(ctx context.Context, a *app) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	log, err := a.nodeLogger(o.logLevel, "text")
	if err != nil {
		return err
	}
	// A terminal that is closed ends them as Ctrl-C does.
	ctx, end := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer end()
	expectWarnings := func(bool) {}
	if !o.wordy { // Nobody asked for warnings of the nodes' own coming and going.
		calmed := newCalm(log.Handler())
		log, expectWarnings = slog.New(calmed), calmed.expected.Store
	}
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	specs, err := o.specs(dir)
	if err != nil {
		return err
	}
	c, err := newDevCluster(a.newServer, specs, log)
	if err != nil {
		return err
	}
	readInBackground()
	c.told, c.expectWarnings = linesOf(ctx, a.stdin), expectWarnings
	c.say = func(text string) { fmt.Fprintln(a.stdout, text) }
	return c.run(ctx, func(ctx context.Context) error {
		expectWarnings(false)
		fmt.Fprintf(a.stdout, "data in %s\n", dir)
		return introduce(ctx, a.stdout, c)
	})
}

func (o *devOptions) check() error {
	if o.nodes < 1 || o.nodes > maxDevNodes {
		return usagef("--nodes must be 1 to %d, not %d", maxDevNodes, o.nodes)
	}
	if o.basePort < 1 || o.basePort+10*(o.nodes-1)+2 > 65535 {
		return usagef("--base-port must be 1 to %d with --nodes %d, not %d", 65535-2-10*(o.nodes-1), o.nodes, o.basePort)
	}
	return nil
}

// folder returns the data folder, and what to do with it at the end.
func (o *devOptions) folder() (dir string, remove func() error, err error) {
	if o.dataDir != "" {
		dir, err = filepath.Abs(o.dataDir)
		return dir, func() error { return nil }, err
	}
	return makeDevFolder()
}

// longTimeouts are the timeouts of dev's nodes. No leader is lost here, and a busy laptop, or one
// whose disk stalls for a moment, must not look like a lost leader.
var longTimeouts = []string{"--heartbeat-timeout", "1s", "--call-timeout", "4500ms", "--storage-watchdog", "1m"}

// localNames are host names that no site of the Internet has: those of a machine or a network, as containers call it.
var localNames = []string{"--http-host", ".internal,.local,.svc"}

// devNode is one node of the cluster, before it runs.
type devNode struct {
	tag              string
	dir              string
	grpc, raft, http string
}

// specs lays the cluster out. A kept folder must hold as many nodes as are
// asked for: the list of first members cannot change at a restart.
func (o *devOptions) specs(dir string) ([]devNode, error) {
	if kept := keptNodes(dir); kept != 0 && kept != o.nodes {
		return nil, usagef("%s holds a cluster of %d nodes: use --nodes %d, or another --data-dir", dir, kept, kept)
	}
	return layOut(dir, o.nodes, func(n, port int) (string, error) { return loopback(o.basePort + 10*n + port), nil })
}

// layOut lays size nodes out, with data in dir. address returns that of a node's port: 0
// for gRPC, 1 for Raft and 2 for HTTP.
func layOut(dir string, size int, address func(n, port int) (string, error)) ([]devNode, error) {
	var specs []devNode
	for n := range size {
		spec := devNode{tag: devTag(n), dir: filepath.Join(dir, devTag(n))}
		var err error
		for port, addr := range []*string{&spec.grpc, &spec.raft, &spec.http} {
			if *addr, err = address(n, port); err != nil {
				return nil, err
			}
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// keptNodes counts the nodes whose data is in dir from an earlier run.
func keptNodes(dir string) int {
	n := 0
	for ; n < maxDevNodes; n++ {
		if _, err := os.Stat(filepath.Join(dir, devTag(n))); err != nil {
			break
		}
	}
	return n
}

func devTag(n int) string { return string(rune('A' + n)) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// flags returns the flags of serve that start the node by hand.
func (n devNode) flags(all []devNode) []string {
	args := []string{
		"--tag", n.tag, "--data-dir", n.dir,
		"--grpc", n.grpc, "--raft", n.raft, "--http", n.http,
	}
	for _, peer := range all {
		args = append(args, "--peer", peer.tag+"="+peer.grpc)
	}
	if len(all) == 1 {
		args = append(args, "--single-node")
	}
	return args
}

// checkPorts fails if a port is in use. The node would find out too, but after it made its data folder.
func checkPorts(specs []devNode) error {
	for _, n := range specs {
		for _, addr := range []string{n.grpc, n.raft, n.http} {
			lis, err := net.Listen("tcp", addr)
			if op, ok := errors.AsType[*net.OpError](err); ok {
				err = op.Err // Without the address.
			}
			if err != nil {
				return fmt.Errorf("node %s cannot listen on %s: %w; if another cluster is running, try --base-port", n.tag, addr, err)
			}
			_ = lis.Close()
		}
	}
	return nil
}

func introduce(ctx context.Context, w io.Writer, c *devCluster) error {
	var rows [][2]string
	var endpoints []string
	for i, n := range c.nodes {
		endpoints = append(endpoints, n.GRPCAddr())
		rows = append(rows, [2]string{
			"node " + c.specs[i].tag,
			fmt.Sprintf("grpc %s  raft %s  http %s", n.GRPCAddr(), n.RaftAddr(), n.HTTPAddr()),
		})
	}
	fields(w, rows)
	for i, n := range c.nodes {
		if err := printSamples(ctx, w, c.specs[i].tag, n.GRPCAddr()); err != nil {
			return fmt.Errorf("node %s: %w", c.specs[i].tag, err)
		}
	}
	_, err := fmt.Fprintf(w, `
page: http://%s/
try in another terminal:
  export IDNODE_ENDPOINTS=%s
  idnode next 'invoices|'
and here: kill A
ready
`, c.nodes[0].HTTPAddr(), strings.Join(endpoints, ","))
	return err
}

// printSamples prints an id of each kind from the node called tag, of a database used only for that.
// It waits for answers: a serving node can be without a leader again for a moment.
func printSamples(ctx context.Context, w io.Writer, tag, endpoint string) error {
	s := &clusterClient{connection: connection{Endpoints: []string{endpoint}}, database: "samples", timeout: defaultTimeout}
	defer s.close()
	var rows [][2]string
	for _, kind := range [][2]string{{"GUID", ""}, {"server-side", "users/"}, {"identity", "users|"}} {
		res, err := idsVia(s.untilAnswered).Generate(ctx, &idnodev1.GenerateRequest{Database: s.database, Template: kind[1], Count: 1})
		if err != nil {
			return fmt.Errorf("%s: %w", kind[0], err)
		}
		rows = append(rows, [2]string{"  " + kind[0], strings.Join(res.GetIds(), " ")})
	}
	res, err := idsVia(s.untilAnswered).NextRange(ctx, &idnodev1.NextRangeRequest{Database: s.database, Tag: "users"})
	if err != nil {
		return fmt.Errorf("HiLo range: %w", err)
	}
	id, claimed := "users/"+strings.ToLower(tag)+"@example.org", " (claimed)"
	_, err = idsVia(s.untilAnswered).Claim(ctx, &idnodev1.ClaimRequest{Database: s.database, Id: id})
	if reasonOf(err) == "ID_CLAIMED" { // By an earlier run, in a kept data folder.
		claimed, err = " (claimed before)", nil
	}
	if err != nil {
		return fmt.Errorf("semantic: %w", err)
	}
	fmt.Fprintf(w, "\nids from %s\n", tag)
	fields(w, append(rows, [2]string{
		"  HiLo range",
		fmt.Sprintf("%[1]s%[2]d-%[4]s to %[1]s%[3]d-%[4]s", res.GetPrefix(), res.GetLow(), res.GetHigh(), res.GetNodeTag()),
	}, [2]string{"  semantic", id + claimed}))
	return nil
}
