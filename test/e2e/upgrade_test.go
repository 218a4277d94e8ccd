package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// A node of the next release reads a log format more than one of the newest release. The next release is this source
// with testdata/next.patch: an operation that needs that format, SkipIdentity, with all that CONTRIBUTING.md asks for.
// It is encoded by hand, as the most frequent operation is, so that the patch has no generated code.
const (
	oldFormat = raftlog.FormatVersion
	newFormat = 4
)

// hold keeps a node of the next release at the old log format.
var hold = []string{"--max-log-format", fmt.Sprint(oldFormat)}

// upgrade is a cluster under traffic whose nodes are of the newest release, or of the next.
type upgrade struct {
	*harness.Run
	c       *harness.Cluster
	traffic *harness.Traffic
	// next is the program of the next release, and skipped the last value that was given up.
	next    string
	skipped int64
}

// startOld starts a cluster of the newest release. Snapshots are taken so often, and so few
// entries kept, that a node which was away needs one from a leader that may be of the
// other release.
func startOld(t *testing.T) *upgrade {
	t.Helper()
	next, _ := harness.Next(t)
	u := &upgrade{next: next, c: harness.StartCluster(t, harness.Config{
		Program: harness.Released(t),
		Tuning:  failpoint.Tuning{SnapshotThreshold: 50, SnapshotInterval: time.Second, TrailingLogs: 20},
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
	u.becomes(n, reads)
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

// becomes has the next start of a node be with the release that reads a log format.
func (u *upgrade) becomes(n *harness.Node, reads uint32) {
	n.Program = ""
	if reads == newFormat {
		n.Program = u.next
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

// agree stops the traffic, has each node skip values, compares the states of all nodes, and goes on.
func (u *upgrade) agree(t *testing.T, format uint32) {
	t.Helper()
	u.traffic.Stop()
	u.skip(t, format)
	u.c.Agree(t)
	for _, n := range u.c.Nodes {
		if got := u.format(t, n); got != format {
			t.Errorf("node %s has log format %d, want %d", n.Tag, got, format)
		}
	}
	u.traffic = u.Start(t, 10*time.Second)
}

// skip calls the operation of the newer log format at each node. An old node does not know it, and a new one refuses it
// while the cluster writes the old format.
func (u *upgrade) skip(t *testing.T, format uint32) {
	t.Helper()
	const many = 10
	for _, n := range u.c.Nodes {
		code, says := codes.OK, ""
		switch {
		case n.Program == "":
			code, says = codes.Unimplemented, "unknown service idnode.next.IdsService"
		case format < newFormat:
			code, says = codes.FailedPrecondition, fmt.Sprintf("the cluster writes log format %d until all members read %d", format, newFormat)
		default:
			u.skipped += many
		}
		var now idnodev1.SeedIdentityResponse
		ctx, cancel := context.WithTimeout(t.Context(), changed)
		err := n.Conn.Invoke(ctx, "/idnode.next.IdsService/SkipIdentity", &idnodev1.NextIdentityRequest{Name: "skipped", Count: many}, &now)
		cancel()
		if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
			t.Errorf("node %s skipped values at log format %d with %v, want %v and %q", n.Tag, format, err, code, says)
		}
		if code == codes.OK && now.GetValue() != u.skipped {
			t.Errorf("node %s skipped values up to %d, want %d", n.Tag, now.GetValue(), u.skipped)
		}
	}
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
	return u.c.Nodes[slices.IndexFunc(u.c.Nodes, func(n *harness.Node) bool { return n.Program == "" })]
}

// failOver bounds the time until another node leads: an election may be lost, and
// held again.
const failOver = 4 * time.Second

// TestUpgradeAndBack takes a cluster to the next release, node by node, back again, and up
// for good, under traffic and with leaders of both. As long as the log format is held, the
// states of both releases are the same, to the bit, and nothing is refused but by the node
// that is away; but what needs the newer format is refused until the raise.
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
	u.becomes(d, newFormat)
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
		u.keeps(t)
	}
	u.tooOld(t, u.c.Nodes[1])
	u.agree(t, newFormat)
	u.traffic.Stop()
	u.End(t)
}

// keeps checks that each node's files have what the next release wrote: that is not damage to the older one, and
// stays where it writes them again.
func (u *upgrade) keeps(t *testing.T) {
	t.Helper()
	for _, n := range u.c.Nodes {
		for _, name := range []string{"node.json", "witness.json"} {
			var keys struct{ Next string }
			data, err := os.ReadFile(filepath.Join(n.DataDir, name))
			if err == nil {
				err = json.Unmarshal(data, &keys)
			}
			if err != nil || keys.Next != "kept" {
				t.Errorf("node %s has in %s, with %v: %s", n.Tag, name, err, data)
			}
		}
	}
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
		u.becomes(n, c.reads)
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

// TestReleasesBesideEachOther: the commands of each release call nodes of the other one. A backup
// of the newest release is restored into a cluster of the next; one of the newer log format is
// refused by the release, with both formats, and changes nothing.
func TestReleasesBesideEachOther(t *testing.T) {
	tier.Long(t)
	released := harness.Released(t)
	old := &release{released, harness.StartCluster(t, harness.Config{Direct: true, Program: released})}
	program, _ := harness.Next(t)
	next := &release{program, harness.StartCluster(t, harness.Config{Direct: true, Program: program})}
	next.usesAll(t, old, "first")
	old.usesAll(t, next, "second")
	ofRelease, newer := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "newer")
	if out, code := old.does(t, old, "backup "+ofRelease); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if out, code := next.does(t, next, "restore "+ofRelease+" --skip-ahead 1000 --share-tags --yes"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := next.does(t, next, "identity get invoices"); code != 0 || !strings.Contains(out, "1001") {
		t.Errorf("after the restore, exit code %d: %s", code, out)
	}
	if out, code := next.does(t, next, "backup "+newer); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	before, code := old.does(t, old, "identity list")
	if code != 0 || !strings.Contains(before, "invoices") {
		t.Errorf("exit code %d: %s", code, before)
	}
	says := fmt.Sprintf("log format %d, this program supports %d", newFormat, oldFormat)
	if out, code := old.does(t, old, "restore "+newer+" --skip-ahead 1000 --share-tags --yes"); code != 1 || !strings.Contains(out, says) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if after, _ := old.does(t, old, "identity list"); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
}

// release is a program, and a cluster of it.
type release struct {
	program string
	*harness.Cluster
}

// usesAll runs commands of all kinds of id at the nodes of another release, with names of their own.
func (r *release) usesAll(t *testing.T, at *release, name string) {
	t.Helper()
	for _, command := range []string{
		"next invoices|", "next orders/", "hilo next users", "claim NAME@example.org", "series define NAME --format {number}",
		"series take NAME --key k1", "series report NAME", "snowflake define NAME", "snowflake next NAME", "cluster status",
	} {
		if out, code := r.does(t, at, strings.ReplaceAll(command, "NAME", name)); code != 0 {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// does runs a command of r at the nodes of another release, and returns what it prints.
func (r *release) does(t *testing.T, at *release, command string) (string, int) {
	t.Helper()
	cmd := harness.CommandOf(t, r.program, append(strings.Fields(command), "--endpoint", at.Nodes[0].GRPC)...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestNextFormatFits: the patch is edited with the lines that it changes.
func TestNextFormatFits(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "git", "apply", "--check", "test/e2e/testdata/next.patch")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GIT_DIR=none")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNextFormatKeepsTheOld: with the patch the older entries and encodings are as they were, and the state refuses the
// operation below its format.
func TestNextFormatKeepsTheOld(t *testing.T) {
	tier.Long(t)
	_, source := harness.Next(t)
	const older = "Kept$|KeepTheirBytes$|^TestSkip|Transcripts|Format"
	cmd := exec.CommandContext(t.Context(), "go", "test", "-run", older, "./raftlog", "./fsm/...")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ok") {
		t.Errorf("%v: %s", err, out)
	}
}
