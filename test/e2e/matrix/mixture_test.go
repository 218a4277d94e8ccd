package matrix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// soundLine is so short that it has no effect. A relay begun with a line that does
// something can be given another one while connections are open.
var soundLine = edge.Line{Delay: time.Microsecond}

// fault breaks one node, and returns what ends that: the node then recovers.
type fault struct {
	name  string
	begin func(t *testing.T, r *row, n *harness.Node) (end func())
}

// faults are those of the mixture: each hits one node, so that the others are a
// majority.
var faults = []fault{
	{"kill", func(t *testing.T, _ *row, n *harness.Node) func() {
		n.Process.Kill()
		return func() { n.Start(t) }
	}},
	{"stop", func(t *testing.T, _ *row, n *harness.Node) func() {
		n.Process.Stop(t)
		return func() { n.Start(t) }
	}},
	{"pause", func(t *testing.T, r *row, n *harness.Node) func() {
		n.Process.Signal(t, syscall.SIGSTOP)
		return func() {
			n.Process.Signal(t, syscall.SIGCONT)
			r.wakes(t, n)
		}
	}},
	{"isolate", func(_ *testing.T, r *row, n *harness.Node) func() {
		r.c.Isolate(n)
		return r.c.Heal
	}},
	{"cut out", func(_ *testing.T, r *row, n *harness.Node) func() {
		for _, o := range r.c.Others(n) {
			r.c.CutOneWay(n, o)
		}
		return r.c.Heal
	}},
	{"cut in", func(_ *testing.T, r *row, n *harness.Node) func() {
		for _, o := range r.c.Others(n) {
			r.c.CutOneWay(o, n)
		}
		return r.c.Heal
	}},
	{"cut port", func(_ *testing.T, r *row, n *harness.Node) func() {
		port := []harness.Port{harness.RaftPort, harness.CallersPort}[r.random.IntN(2)]
		f := []edge.Fault{edge.Cut, edge.LoseRequests, edge.LoseAnswers}[r.random.IntN(3)]
		for _, o := range r.c.Others(n) {
			r.c.CutPort(o, n, port, f)
		}
		return r.c.Heal
	}},
	{"bad lines", func(_ *testing.T, r *row, _ *harness.Node) func() {
		r.c.Become(edge.Line{Delay: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.02, BytesPerSecond: 1 << 20})
		return func() { r.c.Become(soundLine) }
	}},
	{"failing disk", func(t *testing.T, r *row, n *harness.Node) func() {
		if !harness.CanTrace() {
			return func() {}
		}
		release := n.Process.FailDisk(t)
		return func() {
			release()
			n.Process.Kill()
			n.Start(t)
		}
	}},
	{"transfer", func(_ *testing.T, r *row, n *harness.Node) func() {
		ctx, cancel := context.WithTimeout(context.Background(), silent)
		defer cancel()
		_, _ = n.Cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: n.Tag}) // It may fail as it likes.
		return func() {}
	}},
	{"resets", func(_ *testing.T, r *row, n *harness.Node) func() {
		for range 5 {
			r.c.Reset(n)
			after(50 * time.Millisecond)
		}
		return func() {}
	}},
	{"flap", func(_ *testing.T, r *row, n *harness.Node) func() {
		for range 5 {
			r.c.Isolate(n)
			after(100 * time.Millisecond)
			r.c.Heal()
			after(100 * time.Millisecond)
		}
		return func() {}
	}},
}

// inside are faults of a program with failpoints.
var inside = []fault{
	{"killed at a point", func(t *testing.T, r *row, n *harness.Node) func() {
		n.Process.Kill()
		n.Env = append(n.Env, fmt.Sprintf("FAILPOINT=%s:%d", failpoint.All[r.random.IntN(len(failpoint.All))], 1+r.random.IntN(20)))
		n.Start(t)
		return func() {
			n.Process.Kill()
			n.Env = n.Env[:len(n.Env)-1]
			n.Start(t)
		}
	}},
	{"wrong clock", func(t *testing.T, r *row, n *harness.Node) func() {
		setClock(t, []time.Duration{-time.Hour, year}[r.random.IntN(2)], n)
		return func() { setClock(t, 0, n) }
	}},
}

// clusters are those that the mixture breaks.
var clusters = []struct {
	name   string
	config func(t *testing.T) harness.Config
	faults []fault
}{
	{"three nodes", func(t *testing.T) harness.Config {
		return harness.Config{Tuning: snapshotOften}
	}, slices.Concat(faults, inside)},
	{"five nodes with TLS", func(t *testing.T) harness.Config {
		return harness.Config{Size: 5, Tuning: snapshotOften, Certs: harness.Certificates(t, "A", "B", "C", "D", "E")}
	}, faults},
}

// TestF29Mixture draws faults, nodes and times from the seed, and lets each fault
// begin while the node of the one before still recovers. Now and then all is
// healed, and the cluster must serve and be of one state. IDNODE_E2E_CHAOS says
// for how long all of it goes on.
func TestF29Mixture(t *testing.T) {
	tier.Long(t)
	length := 30 * time.Second
	if text := os.Getenv("IDNODE_E2E_CHAOS"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range clusters {
		t.Run(kind.name, func(t *testing.T) {
			c := harness.NewCluster(t, kind.config(t))
			c.Become(soundLine)
			for _, n := range c.Nodes {
				n.Env = []string{"FAILPOINT_CLOCK=" + clockFile(n)}
				setClock(t, 0, n)
				n.Start(t)
			}
			c.WaitReady(t)
			r := record(t, c, silent)
			r.traffic.Hurry()
			r.random = r.Random(0)
			begin := time.Now()
			for time.Since(begin) < length/time.Duration(len(clusters)) && !t.Failed() {
				r.figures.cycles++
				r.mix(t, swarm(r.random, kind.faults), 4)
				r.c.WaitReady(t)
				r.traffic.Thick(t)
			}
			r.ends(t)
		})
	}
}

// swarm draws about half of the faults: those of one kind can keep others from showing
// anything.
func swarm(random *rand.Rand, all []fault) []fault {
	some := slices.Clone(all)
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some[:2+random.IntN(len(some)-1)]
}

// mix breaks one node after the other. The next fault begins when the majority
// serves again, and the node before it need not.
func (r *row) mix(t *testing.T, faults []fault, rounds int) {
	t.Helper()
	for range rounds {
		f := faults[r.random.IntN(len(faults))]
		n := r.c.Nodes[r.random.IntN(len(r.c.Nodes))]
		if !n.Process.Running() {
			continue
		}
		end := f.begin(t, r, n)
		others := r.c.Others(n)
		r.figures.gaps = append(r.figures.gaps, r.traffic.Probe(t, others[r.random.IntN(len(others))]))
		after(time.Duration(r.random.IntN(1000)) * time.Millisecond)
		end()
		// A recovering node gets up to half a second before the next fault.
		after(time.Duration(r.random.IntN(500)) * time.Millisecond)
	}
}
