package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// pointWait is how long a point may take to be met by a node that meets it at
	// all; snapshots are considered once a second.
	pointWait = 8 * time.Second
	// pointTries is how often a point is tried, with ever fewer hits asked for.
	pointTries = 4
)

// seldom are the points that are met once or twice in the life of a process; all
// others are met with nearly every call.
var seldom = []failpoint.Point{
	failpoint.TermBefore, failpoint.TermAfter, failpoint.VoteBefore, failpoint.VoteAfter,
	failpoint.RestoreBefore, failpoint.RestoreAfter, failpoint.DeleteBefore, failpoint.DeleteAfter,
	failpoint.SnapshotBefore, failpoint.SnapshotWritten, failpoint.SnapshotAfter,
	failpoint.EtagBefore, failpoint.EtagAfter, failpoint.RecordBefore, failpoint.RecordAfter,
}

// TestF04KilledAtPoints lets a node kill itself at each point of the code at which
// a crash leaves something behind, and all nodes at once at some: what was
// acknowledged stays, and a vote is given once.
func TestF04KilledAtPoints(t *testing.T) {
	tier.Long(t)
	tuned := snapshotOften
	tuned.EtagBlock = 64
	r := start(t, harness.Config{Tuning: tuned}, deadline)
	// Inside the Raft library's snapshots there are no points.
	var calls []string
	if harness.CanTrace() {
		calls = []string{"/^rename", "fsync"}
	}
	random := r.Random(0)
	hits := make(map[string]int)
	for range r.cycles(t, 1, 50) {
		for _, p := range failpoint.All {
			r.traffic.Thick(t)
			if r.killedAt(t, random, p) {
				hits[string(p)]++
			}
			r.c.WaitReady(t)
		}
		for _, call := range calls {
			r.traffic.Thick(t)
			if r.killedInCall(t, random, call) {
				hits["system call "+call]++
			}
			r.c.WaitReady(t)
		}
	}
	r.ends(t)
	met := 0
	t.Logf("hits: %v", hits)
	for _, p := range failpoint.All {
		if met += min(hits[string(p)], 1); hits[string(p)] == 0 {
			t.Errorf("no node was killed at %s", p)
		}
	}
	r.figures.note = fmt.Sprintf("%d of %d points hit", met, len(failpoint.All))
}

// killedAt lets nodes kill themselves at the point, and starts them again. It
// reports whether one did.
func (r *row) killedAt(t *testing.T, random *rand.Rand, p failpoint.Point) bool {
	t.Helper()
	if p == failpoint.RecordBefore || p == failpoint.RecordAfter {
		return r.killedJoining(t, random, p)
	}
	most := 40
	if slices.Contains(seldom, p) {
		most = 2
	}
	for try := range pointTries {
		nodes := []*harness.Node{r.c.Nodes[random.IntN(len(r.c.Nodes))]}
		if random.IntN(4) == 0 {
			nodes = r.c.Nodes
		}
		for _, n := range nodes {
			n.Process.Kill()
			n.Env = []string{fmt.Sprintf("FAILPOINT=%s:%d", p, 1+random.IntN(max(most>>try, 1)))}
			n.Start(t)
		}
		if isElection(p) {
			r.elects(t, nodes)
		}
		killed := r.killedItself(t, nodes, p)
		r.revive(t)
		if killed {
			return true
		}
	}
	return false
}

func isElection(p failpoint.Point) bool {
	return strings.HasPrefix(string(p), "term-") || strings.HasPrefix(string(p), "vote-")
}

// elects makes an election in which the first of the nodes takes part, unless one of
// them has ended before.
func (r *row) elects(t *testing.T, nodes []*harness.Node) {
	t.Helper()
	ended := func(n *harness.Node) bool { return !n.Process.Running() }
	harness.Eventually(t, 20*time.Second, "a node that takes part in an election, or has ended", func(ctx context.Context) error {
		if slices.ContainsFunc(nodes, ended) || serves(ctx, nodes[0]) {
			return nil
		}
		return errors.New("it does not serve yet")
	})
	if slices.ContainsFunc(nodes, ended) {
		return
	}
	for _, o := range r.c.Others(nodes[0]) {
		if o.Process.Running() && leads(t, o) {
			o.Process.Kill()
		}
	}
}

// killedItself waits until one of the nodes has killed itself at the point, and
// reports whether one did.
func (r *row) killedItself(t *testing.T, nodes []*harness.Node, p failpoint.Point) bool {
	t.Helper()
	end := time.Now().Add(pointWait)
	for time.Now().Before(end) {
		for _, n := range nodes {
			if !n.Process.Running() && strings.HasSuffix(n.Process.Tail(1), "killed at "+string(p)) {
				return true
			}
		}
		after(10 * time.Millisecond)
	}
	return false
}

// revive starts all nodes again that are armed or have ended, as a sound program.
func (r *row) revive(t *testing.T) {
	t.Helper()
	for _, n := range r.c.Nodes {
		if n.Env == nil && n.Process.Running() {
			continue
		}
		n.Process.Kill()
		n.Env = nil
		n.Start(t)
	}
	r.c.WaitReady(t)
}

// killedJoining lets a node that joins kill itself as it writes its own record, and
// start again; then it is removed.
func (r *row) killedJoining(t *testing.T, random *rand.Rand, p failpoint.Point) bool {
	t.Helper()
	n := r.c.Stranger(t, "", "--join", r.c.Nodes[0].GRPC)
	n.Env = []string{fmt.Sprintf("FAILPOINT=%s:%d", p, 1+random.IntN(3))}
	n.Start(t)
	killed := r.killedItself(t, []*harness.Node{n}, p)
	n.Process.Kill()
	n.Env = nil
	n.Start(t)
	n.Settled(t)
	removed(t, r.c.Nodes[0], n)
	return killed
}

// killedInCall lets a node be killed as it makes a system call.
func (r *row) killedInCall(t *testing.T, random *rand.Rand, call string) bool {
	t.Helper()
	n := r.c.Nodes[random.IntN(len(r.c.Nodes))]
	release := n.Process.KillInCall(t, call, 1+random.IntN(2))
	end := time.Now().Add(pointWait)
	for n.Process.Running() && time.Now().Before(end) {
		after(10 * time.Millisecond)
	}
	killed := !n.Process.Running()
	release()
	r.revive(t)
	return killed
}
