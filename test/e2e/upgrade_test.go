package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// A node of the next release reads a log format more than one of this release.
const (
	oldFormat = raftlog.FormatVersion
	newFormat = oldFormat + 1
)

// hold keeps a node of the next release at the old log format.
var hold = []string{"--max-log-format", fmt.Sprint(oldFormat)}

// upgrade is a cluster under traffic whose nodes are of one release or the next.
type upgrade struct {
	*harness.Run
	c       *harness.Cluster
	traffic *harness.Traffic
}

// startOld starts a cluster of this release. Snapshots are taken so often, and so few
// entries kept, that a node which was away needs one from a leader that may be of the
// other release.
func startOld(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{c: harness.StartCluster(t, harness.Config{
		Tuning: failpoint.Tuning{SnapshotThreshold: 50, SnapshotInterval: time.Second, TrailingLogs: 20},
	})}
	u.Run = harness.Record(t, u.c, 4*time.Second, nil)
	u.traffic = u.Start(t, 10*time.Second)
	return u
}

// runs restarts a node as one that reads a log format, under traffic. The other nodes
// answer every call meanwhile: a leader transfers leadership before it stops.
func (u *upgrade) runs(t *testing.T, n *harness.Node, reads uint32, flags ...string) {
	t.Helper()
	u.traffic.Thick(t)
	u.Outage()
	var others []*harness.Watch
	for _, o := range u.c.Others(n) {
		others = append(others, u.Watch(o))
	}
	n.Process.Stop(t)
	n.Tuning.LogFormat = reads
	n.Start(t, flags...)
	n.Settled(t)
	u.traffic.Thick(t)
	for i, w := range others {
		if seen := w.Seen(); seen.Refused > 0 {
			t.Errorf("node %s refused %d calls and answered %d while %s was restarted",
				u.c.Others(n)[i].Tag, seen.Refused, seen.Taken, n.Tag)
		}
	}
	if outage := u.Outage(); outage > failOver {
		t.Errorf("nothing was answered for %s while %s was restarted", outage, n.Tag)
	}
}

// leaderLast are the nodes, the leader last, as they are best restarted.
func (u *upgrade) leaderLast(t *testing.T) []*harness.Node {
	t.Helper()
	leader := u.c.LeaderAmong(t, u.c.Nodes)
	return append(u.c.Others(leader), leader)
}

// led lets n lead for a while.
func (u *upgrade) led(t *testing.T, n *harness.Node) {
	t.Helper()
	letLead(t, u.c, u.c.Others(n)[0], n)
	u.traffic.Thick(t)
}

// crashes kills a node that leads and starts it again: others, of either release,
// go on without it, and it catches up from them.
func (u *upgrade) crashes(t *testing.T, n *harness.Node, flags ...string) {
	t.Helper()
	n.Process.Kill()
	if took := u.traffic.Probe(t, u.c.Others(n)[0]); took > failOver {
		t.Errorf("it took %s to go on without node %s", took, n.Tag)
	}
	u.traffic.Thick(t)
	n.Start(t, flags...)
	n.WaitReady(t)
}

// agree stops the traffic, compares the states of all nodes, and goes on.
func (u *upgrade) agree(t *testing.T, format uint32) {
	t.Helper()
	u.traffic.Stop()
	u.c.Agree(t)
	for _, n := range u.c.Nodes {
		if got := u.format(t, n); got != format {
			t.Errorf("node %s has log format %d, want %d", n.Tag, got, format)
		}
	}
	u.traffic = u.Start(t, 10*time.Second)
}

// format is the log format that the cluster writes, as n knows it.
func (u *upgrade) format(t *testing.T, n *harness.Node) uint32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), changed)
	defer cancel()
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s.LogFormat
}

// opens waits until n knows that the log format was raised.
func (u *upgrade) opens(t *testing.T, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, changed, "the newer log format", func(context.Context) error {
		if got := u.format(t, n); got != newFormat {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// old is a node that is not upgraded yet.
func (u *upgrade) old() *harness.Node {
	return u.c.Nodes[slices.IndexFunc(u.c.Nodes, func(n *harness.Node) bool { return n.Tuning.LogFormat != newFormat })]
}

// failOver bounds the time until another node leads: an election may be lost, and
// held again.
const failOver = 4 * time.Second

// TestUpgradeAndBack takes a cluster to the next release, node by node, back again, and up
// for good, under traffic and with leaders of both. As long as the log format is held, the
// states of both releases are the same, to the bit, and nothing is refused but by the node
// that is away.
func TestUpgradeAndBack(t *testing.T) {
	tier.Long(t)
	u := startOld(t)
	for i, n := range u.leaderLast(t) {
		u.runs(t, n, newFormat, hold...)
		u.led(t, n) // a leader that is new, with followers that are old
		if i < 2 {
			last := u.old()
			u.led(t, last) // and the other way round
			u.crashes(t, last)
			u.led(t, n)
			u.crashes(t, n, hold...)
		}
		u.agree(t, oldFormat)
	}
	// One that begins with the next release can go back, too.
	d := u.c.Add(t, "", "--join", u.c.Nodes[0].GRPC)
	d.Tuning.LogFormat = newFormat
	d.Start(t, hold...)
	d.Settled(t)
	u.traffic.Joined(d, 2)
	for _, reads := range []uint32{oldFormat, newFormat} {
		for _, n := range u.leaderLast(t) {
			u.runs(t, n, reads)
		}
		if reads == newFormat {
			u.opens(t, u.c.Nodes[0])
		}
		u.agree(t, reads)
	}
	u.tooOld(t, u.c.Nodes[1])
	u.agree(t, newFormat)
	u.traffic.Stop()
	u.End(t)
}

// tooOld starts a node with the old release, and held at the old format, where the cluster
// writes the newer one: both end with a reason, and the node goes on with the new release.
// Its newest snapshot is of the newer format too.
func (u *upgrade) tooOld(t *testing.T, n *harness.Node) {
	t.Helper()
	u.snapshots(t, n)
	n.Process.Stop(t)
	u.traffic.Thick(t)
	for _, c := range []struct {
		reads uint32
		flags []string
		says  string
	}{
		{oldFormat, nil, fmt.Sprintf("knows formats up to %d", oldFormat)},
		{newFormat, hold, "newer log format"},
	} {
		n.Tuning.LogFormat = c.reads
		n.Start(t, c.flags...)
		if code := n.Process.Wait(t, changed); code != 5 {
			t.Errorf("a node that reads formats up to %d with %v ended with exit code %d, want 5", c.reads, c.flags, code)
		}
		if last := n.Process.Tail(1); !strings.Contains(last, c.says) {
			t.Errorf("its last line does not say %q: %s", c.says, last)
		}
	}
	n.Start(t)
	n.WaitReady(t)
}

// snapshots waits until n has taken a snapshot of what it has applied by now.
func (u *upgrade) snapshots(t *testing.T, n *harness.Node) {
	t.Helper()
	now, err := n.Cluster.GetStatus(t.Context(), &idnodev1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, changed, "a snapshot", func(context.Context) error {
		all, err := filepath.Glob(filepath.Join(n.DataDir, "snapshots", "*-*-*"))
		for _, path := range all {
			var term, index, at uint64
			if _, err := fmt.Sscanf(filepath.Base(path), "%d-%d-%d", &term, &index, &at); err == nil &&
				index >= now.AppliedIndex && !strings.HasSuffix(path, ".tmp") {
				return nil
			}
		}
		return fmt.Errorf("none at %d or above: %v, %w", now.AppliedIndex, all, err)
	})
}

// TestUpgradeWaitsForTheLast: a node of the old release that joins while others are new
// keeps the log format where it is, until it is upgraded too.
func TestUpgradeWaitsForTheLast(t *testing.T) {
	tier.Long(t)
	u := startOld(t)
	for _, n := range u.leaderLast(t)[:2] {
		u.runs(t, n, newFormat)
	}
	u.led(t, u.leaderLast(t)[0])
	last := u.old()
	d := u.c.Add(t, "", "--join", u.c.Nodes[0].GRPC)
	d.Start(t)
	d.Settled(t)
	u.traffic.Joined(d, 2)
	u.runs(t, last, newFormat)
	u.agree(t, oldFormat)
	u.runs(t, d, newFormat)
	u.opens(t, d)
	u.agree(t, newFormat)
	u.traffic.Stop()
	u.End(t)
}
