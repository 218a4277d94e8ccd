package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// noDiskIsThisFree is a mark that no disk is above: 2^50 bytes.
const noDiskIsThisFree = "1125899906842624"

// nearlyFull starts n again with a disk that counts as nearly full.
func nearlyFull(t *testing.T, n *harness.Node) {
	t.Helper()
	n.Process.Stop(t)
	n.Start(t, "--storage-low-mark", noDiskIsThisFree)
}

// storageFull waits until identities, ranges and claims are refused on n because
// a disk is nearly full, and checks that what needs no proposal goes on.
func storageFull(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	calls := map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error {
			_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders|"})
			return err
		},
		"range": func(ctx context.Context) error {
			_, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "full"})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := n.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/full"})
			return err
		},
	}
	harness.Eventually(t, 10*time.Second, "no quorum of disks at node "+n.Tag, func(ctx context.Context) error {
		// Releasing what is not claimed changes nothing, whenever it is let through.
		_, err := n.Ids.Release(ctx, &idnodev1.ReleaseRequest{Id: "users/nobody"})
		if harness.Reason(err) != "STORAGE_FULL" {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	})
	for what, call := range calls {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := call(ctx)
		cancel()
		if status.Code(err) != codes.ResourceExhausted || harness.Reason(err) != "STORAGE_FULL" {
			t.Errorf("%s on node %s with nearly full disks: %v", what, n.Tag, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := n.Ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "orders"}); err != nil {
		t.Errorf("reading on node %s with nearly full disks: %v", n.Tag, err)
	}
	etags(t, n, ledger, 3)
	stillGives(t, n, ledger)
}

// TestStorageFull: with the leader's disk nearly full, or those of a quorum,
// whatever would be written is refused before anything is; the rest goes on.
func TestStorageFull(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	leader := c.Leader(t)
	low, other := c.Others(leader)[0], c.Others(leader)[1]
	last := take(t, leader, ledger, "orders")
	goesOn := func(when string) {
		t.Helper()
		for _, n := range c.Nodes {
			v := take(t, n, ledger, "orders")
			if v != last+1 {
				t.Errorf("%s: orders/%d after %d: a refused call took a value", when, v, last)
			}
			last = v
		}
	}

	nearlyFull(t, low)
	c.WaitReady(t)
	goesOn("one follower's disk is nearly full")

	transfer(t, leader, low.Tag)
	c.Leader(t)
	before := view(t, low).AppliedIndex
	for _, n := range c.Nodes {
		storageFull(t, n, ledger)
	}
	if after := view(t, low).AppliedIndex; after != before {
		t.Errorf("refused calls wrote %d log entries", after-before)
	}
	transfer(t, other, leader.Tag)
	goesOn("the disk of the leader has space again")

	nearlyFull(t, other)
	for _, n := range c.Nodes {
		storageFull(t, n, ledger)
	}
	for _, n := range []*harness.Node{low, other} {
		n.Process.Stop(t)
		n.Start(t)
		n.WaitReady(t)
	}
	goesOn("all disks have space again")
	c.Agree(t)
}

// callBound is what a call may take: the nodes' own bound and the machine's.
const callBound = 10*time.Second + slack

// allEnded checks that no call of the load took longer than a call may, and that
// each node but the dying one said what became of it.
func allEnded(t *testing.T, load *harness.Load, dying *harness.Node) {
	t.Helper()
	for _, a := range load.Failures() {
		if took := a.Return.Sub(a.Call); took > callBound {
			t.Errorf("a call on node %s took %s: %v", a.Node.Tag, took, a.Err)
		}
		if harness.Reason(a.Err) == "" && a.Node != dying {
			t.Errorf("a call on node %s ended with %v", a.Node.Tag, a.Err)
		}
	}
}

// TestStalledDisk makes every write of the leader hang: it is ended by its
// watchdog, since it would lead for ever, and another takes over.
func TestStalledDisk(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{Flags: []string{"--storage-watchdog", "2s"}})
	ledger := harness.NewLedger(t)
	stalled := c.Leader(t)
	rest := c.Others(stalled)
	load := harness.StartLoad(ledger, rest, "orders", 8, 10*time.Second)
	defer load.Stop()
	own := harness.StartLoad(ledger, []*harness.Node{stalled}, "orders", 8, 10*time.Second)
	defer own.Stop()
	settle(t, ledger)

	release := stalled.Process.StallDisk(t, time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	// More than is reserved: this needs the disk too.
	_, err := stalled.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 1_000_000, BlocksOnly: true})
	if err == nil || ctx.Err() != nil {
		t.Errorf("server-side ids beyond the reserved block on a stalled disk: %v", err)
	}
	c.LeaderAmong(t, rest)
	settle(t, ledger)
	own.Stop()
	load.Stop()
	// Until the watchdog acts there is a leader that does not answer: calls wait
	// for it as long as for one that is not known.
	allEnded(t, load, stalled)
	allEnded(t, own, stalled)
	holes, unknown := ledger.Max("orders")-ledger.Count("orders"), load.Unknown.Load()+own.Unknown.Load()
	if holes > unknown {
		t.Errorf("%d holes, but only %d calls ended without a known outcome", holes, unknown)
	}
	release()
	ends(t, stalled, "took longer than 2s")

	stalled.Start(t)
	c.WaitReady(t)
	for _, n := range c.Nodes {
		take(t, n, ledger, "orders")
		etags(t, n, ledger, 10)
	}
	c.Agree(t)
}

// TestPausedLeader stops the leader's process for a while, as a machine that is
// suspended is: another leads, and the old leader does no harm when it goes on.
func TestPausedLeader(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	paused := c.Leader(t)
	rest := c.Others(paused)
	load := harness.StartLoad(ledger, rest, "orders", 8, 10*time.Second)
	defer load.Stop()
	own := harness.StartLoad(ledger, []*harness.Node{paused}, "orders", 8, 10*time.Second)
	defer own.Stop()
	for range cycles(t, 2) {
		settle(t, ledger)
		paused.Process.Signal(t, syscall.SIGSTOP)
		before := ledger.Count("orders")
		c.LeaderAmong(t, rest)
		harness.Eventually(t, 10*time.Second, "the others go on", func(context.Context) error {
			if now := ledger.Count("orders"); now < before+500 {
				return fmt.Errorf("%d ids since the pause", now-before)
			}
			return nil
		})
		paused.Process.Signal(t, syscall.SIGCONT)
		c.WaitReady(t)
		take(t, paused, ledger, "orders")
		transfer(t, rest[0], paused.Tag)
	}
	own.Stop()
	load.Stop()
	noFailures(t, load)
	allEnded(t, own, nil)
	c.Agree(t)
}
