package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/internal/failpoint"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// The release before: the last commit that wrote log format 2, and that format.
const (
	oldCommit = "b01cb5a000d8dbd29da6a93f0910d02bd534b130"
	oldFormat = 2
)

// hold keeps a new program at the old log format.
var hold = []string{"--max-log-format", fmt.Sprint(oldFormat)}

// upgrade is a cluster under traffic whose nodes run one program or the other.
type upgrade struct {
	*harness.Run
	c       *harness.Cluster
	traffic *harness.Traffic
	// old and new are the programs.
	old, new string
}

// startOld starts a cluster of the release before. Snapshots are taken so often,
// and so few entries kept, that a node which was away needs one from a leader
// that may run the other program.
func startOld(t *testing.T) *upgrade {
	t.Helper()
	u := &upgrade{old: harness.OldProgram(t, oldCommit), new: harness.Binary(t)}
	u.c = harness.StartCluster(t, harness.Config{
		Program: u.old, Tuning: failpoint.Tuning{SnapshotThreshold: 50, SnapshotInterval: time.Second, TrailingLogs: 20},
	})
	u.Run = harness.Record(t, u.c, 4*time.Second, nil)
	u.traffic = u.Start(t, 10*time.Second)
	return u
}

// runs restarts a node with a program, under traffic. The other nodes answer
// every call meanwhile: a leader transfers leadership before it stops.
func (u *upgrade) runs(t *testing.T, n *harness.Node, program string, flags ...string) {
	t.Helper()
	u.traffic.Thick(t)
	u.Outage()
	var others []*harness.Watch
	for _, o := range u.c.Others(n) {
		others = append(others, u.Watch(o))
	}
	n.Process.Stop(t)
	n.Program = program
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

// crashes kills a node that leads and starts it again: others, of either program,
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

// opens waits until n knows of a log format above the old one.
func (u *upgrade) opens(t *testing.T, n *harness.Node) uint32 {
	t.Helper()
	harness.Eventually(t, changed, "the newer log format", func(context.Context) error {
		if got := u.format(t, n); got <= oldFormat {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	return u.format(t, n)
}

// failOver bounds the time until another node leads: an election may be lost, and
// held again.
const failOver = 4 * time.Second

// TestUpgradeAndBack takes a cluster of the release before to this one, node by
// node, back again, and up for good, under traffic and with leaders of both. As
// long as the log format is held, the states of both programs are the same, to
// the bit, and nothing is refused but by the node that is away.
func TestUpgradeAndBack(t *testing.T) {
	tier.Long(t)
	u := startOld(t)
	for i, n := range u.leaderLast(t) {
		u.runs(t, n, u.new, hold...)
		u.led(t, n) // a leader that is new, with followers that are old
		if i < 2 {
			last := u.c.Nodes[slices.IndexFunc(u.c.Nodes, func(n *harness.Node) bool { return n.Program == "" })]
			u.led(t, last) // and the other way round
			u.crashes(t, last)
			u.led(t, n)
			u.crashes(t, n, hold...)
		}
		u.agree(t, oldFormat)
	}
	// One that begins with the new program can go back, too.
	d := u.c.Add(t, "", "--join", u.c.Nodes[0].GRPC)
	d.Program = u.new
	d.Start(t, hold...)
	d.Settled(t)
	u.traffic.Joined(d, 2)
	for _, n := range u.leaderLast(t) {
		u.runs(t, n, u.old, u.keeps(n, d)...)
	}
	u.agree(t, oldFormat)
	for _, n := range u.leaderLast(t) {
		u.runs(t, n, u.new, u.keeps(n, d)...)
	}
	u.agree(t, u.opens(t, u.c.Nodes[0]))
	u.tooOld(t, u.c.Nodes[1])
	u.agree(t, u.opens(t, u.c.Nodes[0]))
	u.traffic.Stop()
	u.End(t)
}

// keeps names the log store of a node that began with the new program, whose
// default is not that of the old one.
func (u *upgrade) keeps(n, began *harness.Node) []string {
	if n != began {
		return nil
	}
	return []string{"--log-store", "wal"}
}

// tooOld starts a node with the old program, and held at the old format, where
// the cluster writes the newer one: both end with a reason, and the node goes on
// with the new program. Its newest snapshot is of the newer format too.
func (u *upgrade) tooOld(t *testing.T, n *harness.Node) {
	t.Helper()
	u.snapshots(t, n)
	n.Process.Stop(t)
	u.traffic.Thick(t)
	n.Program = u.old
	n.Start(t)
	ends(t, n, fmt.Sprintf("knows formats up to %d", oldFormat))
	n.Program = u.new
	n.Start(t, hold...)
	if code := n.Process.Wait(t, changed); code != 5 {
		t.Errorf("a node that is held below the cluster's log format ended with exit code %d, want 5", code)
	}
	if last := n.Process.Tail(1); !strings.Contains(last, "newer log format") {
		t.Errorf("its last line is %s", last)
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

// TestUpgradeWaitsForTheLast: a member of the release before that joins while
// others are new keeps the log format where it is, until it is upgraded too.
func TestUpgradeWaitsForTheLast(t *testing.T) {
	tier.Long(t)
	u := startOld(t)
	for _, n := range u.leaderLast(t)[:2] {
		u.runs(t, n, u.new)
	}
	u.led(t, u.leaderLast(t)[0])
	d := u.c.Add(t, "", "--join", u.c.Nodes[0].GRPC)
	d.Program = u.old
	d.Start(t)
	d.Settled(t)
	u.traffic.Joined(d, 2)
	u.runs(t, u.c.Nodes[slices.IndexFunc(u.c.Nodes, func(n *harness.Node) bool { return n.Program == "" })], u.new)
	u.agree(t, oldFormat)
	_, err := u.c.Nodes[0].Series.DefineSeries(t.Context(), bills)
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a series beside a member that does not know any: %v", err)
	}
	u.runs(t, d, u.new)
	u.agree(t, u.opens(t, d))
	u.numbers(t, d)
	u.traffic.Stop()
	u.End(t)
}

var bills = &idnodev1.DefineSeriesRequest{Name: "bills", Definition: &idnodev1.SeriesDefinition{Format: "{number}"}}

// numbers takes numbers once the cluster is upgraded. They are in a snapshot of the last
// member, which knows them when it comes back, as all others do.
func (u *upgrade) numbers(t *testing.T, last *harness.Node) {
	t.Helper()
	_, err := last.Series.DefineSeries(t.Context(), bills)
	if err != nil {
		t.Fatal(err)
	}
	take := &idnodev1.TakeNumbersRequest{Series: "bills", Keys: []string{"a", "b", "c"}}
	if _, err := last.Series.TakeNumbers(t.Context(), take); err != nil {
		t.Fatal(err)
	}
	u.snapshots(t, last)
	last.Process.Kill()
	u.traffic.Thick(t)
	last.Start(t)
	last.WaitReady(t)
	for _, n := range u.c.Nodes {
		res, err := n.Series.TakeNumbers(t.Context(), take)
		if err != nil || res.GetNumbers()[2].GetText() != "3" {
			t.Errorf("node %s: %v, %v", n.Tag, res, err)
		}
		if res, err := n.Series.VerifySeries(t.Context(), &idnodev1.VerifySeriesRequest{Series: "bills"}); err != nil || !res.GetOk() {
			t.Errorf("node %s: %v, %v", n.Tag, res, err)
		}
	}
}
