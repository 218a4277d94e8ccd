package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bench"
)

// Idnode is a cluster of three idnode processes, with their defaults,
// measured by a fourth one, which is idnode bench.
type Idnode struct {
	env   Env
	dir   string
	nodes []*process
	// endpoints are the nodes' addresses, the leader's first.
	endpoints []string
}

const (
	// smallBatch is how many ids a call takes where calls for several are measured.
	smallBatch = 100
	// largeBatch is as many for server-side ids, which are for bulk inserts.
	largeBatch = 1000
	// rangeSize is the size of the ranges that are reserved.
	rangeSize = 32
)

// Version is what the program says.
func (n *Idnode) Version() string {
	return programVersion(n.env.Idnode, "version")
}

// Points are all ways to get ids; batches are for many callers only.
func (n *Idnode) Points(callers int) []Point {
	points := append([]Point{
		{bench.Identity, bench.Unary, callers, 1},
		{bench.Identity, bench.ViaClient, callers, 1},
		{bench.Identity, bench.Stream, callers, 1},
		{bench.Echo, bench.Unary, callers, 1},
		{bench.ServerSide, bench.Unary, callers, 1},
		{bench.Series, bench.Unary, callers, 1},
	}, ghzPoints(bench.Identity, callers)...)
	if callers == 1 {
		return points
	}
	return append(points,
		Point{bench.Identity, bench.Unary, callers, smallBatch},
		Point{bench.Identity, bench.Stream, callers, smallBatch},
		Point{bench.ServerSide, bench.Unary, callers, largeBatch},
		Point{bench.ServerSide, bench.Stream, callers, largeBatch},
		Point{bench.Range, bench.Unary, callers, rangeSize},
	)
}

// Start starts the nodes and waits until they serve.
func (n *Idnode) Start(ctx context.Context) error {
	if err := n.startNodes(); err != nil {
		return err
	}
	for _, endpoint := range n.endpoints {
		err := poll(ctx, func(ctx context.Context) error {
			_, err := n.ask(ctx, "health", "--endpoint", endpoint)
			return err
		})
		if err != nil {
			return err
		}
	}
	return poll(ctx, n.leaderFirst)
}

func (n *Idnode) startNodes() (err error) {
	if n.dir, err = os.MkdirTemp(n.env.Dir, "bench-idnode-"); err != nil {
		return err
	}
	addrs, err := freeAddresses(2 * clusterSize)
	if err != nil {
		return err
	}
	n.endpoints = addrs[:clusterSize:clusterSize]
	var peers []string
	for i, endpoint := range n.endpoints {
		peers = append(peers, "--peer", nodeTag(i)+"="+endpoint)
	}
	for i, endpoint := range n.endpoints {
		args := append([]string{
			"serve", "--log-level", "error", "--tag", nodeTag(i), "--data-dir", filepath.Join(n.dir, nodeTag(i)),
			"--grpc", endpoint, "--raft", addrs[clusterSize+i], "--http", "",
		}, peers...)
		p, err := n.env.start(exec.Command(n.env.Idnode, args...))
		if err != nil {
			return err
		}
		n.nodes = append(n.nodes, p)
	}
	return nil
}

func nodeTag(i int) string { return string(rune('A' + i)) }

// leaderFirst orders the endpoints so that a lone caller calls the leader.
func (n *Idnode) leaderFirst(ctx context.Context) error {
	for i, endpoint := range n.endpoints {
		out, err := n.ask(ctx, "cluster", "status", "-o", "json", "--endpoint", endpoint)
		if err != nil {
			return err
		}
		var status idnodev1.GetStatusResponse
		if err := protojson.Unmarshal(out, &status); err != nil {
			return err
		}
		if status.GetLeaderTag() != "" && status.GetLeaderTag() == status.GetSelf().GetTag() {
			n.endpoints[0], n.endpoints[i] = endpoint, n.endpoints[0]
			return nil
		}
	}
	return errors.New("no idnode node leads")
}

// ask runs the program and returns what it prints.
func (n *Idnode) ask(ctx context.Context, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, n.env.Idnode, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("idnode %s: %w: %s", args[0], err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// Measure runs idnode bench. It has no warm-up, so the plan's is a run of its
// own before, which warms up the nodes but not the callers.
func (n *Idnode) Measure(ctx context.Context, plan load.Plan, p Point) (bench.Report, error) {
	if p.Via == ViaGhz {
		return ghz(ctx, plan, p, n.dir, n.endpoints[0], "idnode.v1.IdsService.NextIdentity", `{"name":"bench"}`, nil)
	}
	var r bench.Report
	for _, duration := range []fmt.Stringer{plan.WarmUp, plan.Duration} {
		args := []string{
			"bench", "-o", "json", "--op", p.Op, "--via", p.Via, "--callers", fmt.Sprint(p.Callers),
			"--batch", fmt.Sprint(p.Batch), "--duration", duration.String(),
		}
		for _, endpoint := range n.endpoints[:min(p.Callers, clusterSize)] {
			args = append(args, "--endpoint", endpoint)
		}
		out, err := n.ask(ctx, args...)
		if err != nil {
			return bench.Report{}, err
		}
		r = bench.Report{}
		if err := json.Unmarshal(out, &r); err != nil {
			return bench.Report{}, err
		}
	}
	return r, nil
}

// Stop ends the nodes.
func (n *Idnode) Stop() error {
	return errors.Join(endAll(n.nodes, syscall.SIGTERM), os.RemoveAll(n.dir))
}
