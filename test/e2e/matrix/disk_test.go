package matrix

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// endedAfter checks that a node ends by itself, with a failure, in words that
// contain text.
func endedAfter(t *testing.T, n *harness.Node, text string) {
	t.Helper()
	if code := n.Process.Wait(t, 20*time.Second); code == 0 {
		t.Errorf("node %s ended with exit code 0", n.Tag)
	}
	if last := n.Process.Tail(1); !strings.Contains(last, text) {
		t.Errorf("the last line of node %s does not say %q: %s", n.Tag, text, last)
	}
}

// TestF10LeaderDiskStalls makes every write of the leader hang: another one leads soon,
// for callers of the stalled node too, every call ends in time, and the watchdog ends the
// process.
func TestF10LeaderDiskStalls(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for range r.cycles(t, 1, 20) {
		leader := r.c.Leader(t)
		r.traffic.Thick(t)
		release := leader.Process.StallDisk(t, time.Minute)
		r.figures.gaps = append(r.figures.gaps, r.traffic.Probes(t, r.c.Nodes...)...)
		// More than is reserved: this needs the disk too.
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		_, err := leader.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 1_000_000, BlocksOnly: true})
		if err == nil || ctx.Err() != nil {
			t.Errorf("server-side ids beyond the reserved block on a stalled disk: %v", err)
		}
		cancel()
		r.traffic.Thick(t)
		harness.Eventually(t, 20*time.Second, "the watchdog ends the node", func(context.Context) error {
			if last := leader.Process.Tail(1); !strings.Contains(last, "took longer than") {
				return errors.New(last)
			}
			return nil
		})
		release()
		endedAfter(t, leader, "took longer than")
		r.restart(t, leader)
	}
	r.inTime(t, 800*time.Millisecond, 1200*time.Millisecond, 2500*time.Millisecond)
	r.ends(t)
}

// TestF11SlowDisk makes every fsync of one node take long: there is no outage.
func TestF11SlowDisk(t *testing.T) {
	tier.Long(t)
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 2, 40) {
		slow := r.c.Leader(t)
		if i%2 == 1 {
			slow = r.c.Others(slow)[0]
		}
		r.traffic.Thick(t)
		r.Outage()
		release := slow.Process.StallDisk(t, []time.Duration{50, 100, 200, 500}[i/2%4]*time.Millisecond)
		after(4 * time.Second)
		if outage := r.Outage(); outage > within(3*time.Second) {
			t.Errorf("nothing was answered for %s", outage)
		}
		release()
		r.c.WaitReady(t)
	}
	r.ends(t)
}

// TestF12FailedFsync makes fsync fail on a follower, the leader and all nodes:
// each ends at once and never goes on as if it had written, and the others go on.
func TestF12FailedFsync(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for range r.cycles(t, 1, 50) {
		leader := r.c.Leader(t)
		for _, broken := range [][]*harness.Node{{r.c.Others(leader)[0]}, {leader}, r.c.Nodes} {
			r.traffic.Thick(t)
			var releases []func()
			for _, n := range broken {
				releases = append(releases, n.Process.FailDisk(t))
			}
			failed := time.Now()
			awaitMajority(t, broken)
			if took := time.Since(failed) - r.Stalls.Between(failed, time.Now()); took > within(time.Second) {
				t.Errorf("a node ended %s after its fsyncs began to fail, want 1 s", took)
			}
			for i, release := range releases {
				release()
				// Without a leader no node writes, and so no other node notices.
				broken[i].Process.Kill()
			}
			if len(broken) == 1 {
				r.failsOver(t, r.c.Others(broken[0])[0])
			}
			r.restart(t, broken...)
		}
	}
	r.ends(t)
}

// awaitMajority waits until most of the nodes, or the only one, have ended
// because of their disks.
func awaitMajority(t *testing.T, nodes []*harness.Node) {
	t.Helper()
	var gone int
	harness.Eventually(t, 20*time.Second, "nodes that cannot write end", func(context.Context) error {
		gone = 0
		for _, n := range nodes {
			if !n.Process.Running() {
				gone++
			}
		}
		if gone <= len(nodes)/2 {
			return fmt.Errorf("%d of %d have ended", gone, len(nodes))
		}
		return nil
	})
	for _, n := range nodes {
		if !n.Process.Running() {
			endedAfter(t, n, "input/output error")
		}
	}
}
