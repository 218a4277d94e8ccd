package damage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// fewNodes is how many real nodes are damaged unless the environment says more.
	fewNodes = 12
	// ended is within what time a damaged node is gone.
	ended = 5 * time.Second
	// damagedCode is the exit code of a node whose data are damaged.
	damagedCode = 4
)

// TestDamagedNode damages one node of a running cluster after the other. One that
// notices ends before it serves or votes, and says why and what to do; the others
// never stop serving. At last one is rebuilt as it says.
func TestDamagedNode(t *testing.T) {
	few := uint64(fewNodes)
	if !tier.All() {
		few /= 12
	}
	seed, all := seed(t), number(t, "IDNODE_DAMAGED_NODES", few)
	w := startWard(t, rand.New(rand.NewPCG(seed, 0)))
	w.damageSnapshot(t)
	for range all {
		w.damageOne(t)
	}
	w.rebuildOne(t)
	w.end(t)
}

// ward is a cluster whose nodes are damaged, with callers on all of them.
type ward struct {
	c      *harness.Cluster
	ledger *harness.Ledger
	random *rand.Rand
	counts map[string]int
	longer time.Duration
}

func startWard(t *testing.T, random *rand.Rand) *ward {
	t.Helper()
	w := &ward{random: random, counts: map[string]int{}, ledger: harness.NewLedger(t)}
	w.c = harness.StartCluster(t, harness.Config{
		Tuning: failpoint.Tuning{SnapshotThreshold: 100, SnapshotInterval: 500 * time.Millisecond, TrailingLogs: 50},
	})
	live(t, w.c, w.ledger)
	return w
}

// damageSnapshot damages what a node reads last of all, while Raft starts: the
// library itself says only that it could not load any snapshot.
func (w *ward) damageSnapshot(t *testing.T) {
	t.Helper()
	n := w.c.Nodes[0]
	harness.Eventually(t, 20*time.Second, "a snapshot", func(context.Context) error {
		if len(snapshotsOf(n.DataDir)) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	n.Process.Kill()
	w.c.LeaderAmong(t, w.c.Others(n))
	sound, newest := copied(t, n.DataDir), snapshotsOf(n.DataDir)[0]
	d := damage{tag: n.Tag, file: filepath.Join("snapshots", newest, "state.bin"), kind: "zeroed block", at: sector, with: make([]byte, 16)}
	if err := d.do(n.DataDir); err != nil {
		t.Fatal(err)
	}
	w.see(t, n, w.c.Others(n), d)
	w.putBack(t, n, sound)
}

// damageOne kills a node, damages its data and starts it; then it gets back the
// data it had.
func (w *ward) damageOne(t *testing.T) {
	t.Helper()
	n := w.c.Nodes[w.random.IntN(len(w.c.Nodes))]
	others := w.c.Others(n)
	p := &past{Tags: []string{n.Tag, others[0].Tag}, Older: map[string][]string{n.Tag: {n.CopyData(t)}}, Last: map[string]string{}}
	w.serves(t, others) // so that the copy is older than the last state
	n.Process.Kill()
	w.c.LeaderAmong(t, others)
	sound := copied(t, n.DataDir)
	p.Last[n.Tag] = sound
	p.Last[others[0].Tag] = others[0].CopyData(t)
	d, err := p.drawOf(w.random, n.Tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.do(n.DataDir); err != nil {
		t.Fatal(err)
	}
	w.see(t, n, others, d)
	if !n.Process.Running() {
		w.putBack(t, n, sound)
	} // Else what it read was sound, and so is what it wrote since.
}

// putBack gives a node the data back that it had when it was killed. The damaged
// process may have told others how often it was started, so to them this is an older
// copy. It neither voted nor acknowledged anything, so the copy can be trusted.
func (w *ward) putBack(t *testing.T, n *harness.Node, sound string) {
	t.Helper()
	if err := os.RemoveAll(n.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(n.DataDir, os.DirFS(sound)); err != nil {
		t.Fatal(err)
	}
	n.Start(t, "--trust-data")
	w.c.WaitReady(t)
}

// see starts the damaged node and looks at what becomes of it.
func (w *ward) see(t *testing.T, n *harness.Node, others []*harness.Node, d damage) {
	t.Helper()
	load := harness.StartLoad(w.ledger, others, "orders", 2, 10*time.Second)
	defer load.Stop()
	before := len(n.Process.Output())
	begin := time.Now()
	n.Start(t)
	served := w.endsOrServes(t, n)
	said := n.Process.Output()[before:]
	switch {
	case served:
		w.counts[harmless]++
		w.c.WaitReady(t)
	default:
		w.counts[noticed]++
		w.longer = max(w.longer, time.Since(begin))
		last := n.Process.Tail(1)
		for _, want := range []string{"DATA_LOSS", "idnode cluster remove " + n.Tag, "empty " + n.DataDir, "--join"} {
			if !strings.Contains(last, want) {
				t.Errorf("%s: the node does not say %q at its end:\n%s", d, want, said)
			}
		}
		// From this line on it would answer other nodes.
		if strings.Contains(said, "entering follower state") {
			t.Errorf("%s: the node took part before it ended:\n%s", d, said)
		}
	}
	w.serves(t, others)
	load.Stop()
	for _, a := range load.Failures() {
		t.Errorf("%s: a call on the sound node %s failed after %s: %v", d, a.Node.Tag, a.Return.Sub(a.Call), a.Err)
	}
	w.c.Agree(t) // Not earlier: under load no two nodes are asked at the same index.
}

// endsOrServes waits until the node has ended, or serves; one that ends must have
// answered nothing.
func (w *ward) endsOrServes(t *testing.T, n *harness.Node) (served bool) {
	t.Helper()
	answers := 0
	harness.Eventually(t, 20*time.Second, "node "+n.Tag+" ends or serves", func(ctx context.Context) error {
		if _, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "damaged"}); err == nil {
			answers++
		}
		if !n.Process.Running() {
			return nil
		}
		r, err := n.Health.Check(ctx, &healthv1.HealthCheckRequest{})
		if served = err == nil && r.GetStatus() == healthv1.HealthCheckResponse_SERVING; served {
			return nil
		}
		return fmt.Errorf("it is %s, %w", r.GetStatus(), err)
	})
	if !served && answers > 0 {
		t.Errorf("node %s gave %d identities with damaged data", n.Tag, answers)
	}
	if !served && n.Process.Wait(t, ended) != damagedCode {
		t.Errorf("node %s did not end with exit code %d", n.Tag, damagedCode)
	}
	return served
}

// serves takes identities from the nodes.
func (w *ward) serves(t *testing.T, nodes []*harness.Node) {
	t.Helper()
	load := harness.StartLoad(w.ledger, nodes, "orders", 2, 10*time.Second)
	defer load.Stop()
	harness.Eventually(t, 20*time.Second, "identities", func(context.Context) error {
		if n := load.OK.Load(); n < 50 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
}

// rebuildOne does with a damaged node what it says itself.
func (w *ward) rebuildOne(t *testing.T) {
	t.Helper()
	n := w.c.Nodes[2]
	n.Process.Kill()
	d := damage{tag: n.Tag, file: "raft.db", kind: "truncation", at: page}
	if err := d.do(n.DataDir); err != nil {
		t.Fatal(err)
	}
	others := w.c.Others(n)
	w.see(t, n, others, d)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := others[0].Cluster.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: n.Tag}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(n.DataDir); err != nil {
		t.Fatal(err)
	}
	again := w.c.Add(t, "", "--join", others[0].GRPC)
	again.DataDir = n.DataDir
	again.Start(t)
	again.Settled(t)
	if again.Tag != "D" {
		t.Errorf("the rebuilt node has the tag %s, want D", again.Tag)
	}
	w.serves(t, append(others, again))
	w.c.Agree(t)
}

func (w *ward) end(t *testing.T) {
	t.Helper()
	line := fmt.Sprintf("Real nodes: %d damages noticed, each within %s of the start; %d harmless; then one rebuilt as it said.",
		w.counts[noticed], w.longer.Round(10*time.Millisecond), w.counts[harmless])
	t.Log(line)
	noteLine(line)
}
