package matrix

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestF01LeaderKilled kills the leader: another one is found, and the next
// identity comes, within a second or so.
func TestF01LeaderKilled(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	for i := range r.cycles(t, 20, 1000) {
		leader := r.c.Leader(t)
		r.traffic.Thick(t)
		leader.Process.Kill()
		r.failsOver(t, r.c.Others(leader)[i%2])
		r.traffic.Thick(t)
		r.restart(t, leader)
	}
	r.inTime(t, 700*time.Millisecond, 1200*time.Millisecond, 2*time.Second)
	r.ends(t)
}

// TestF05LeaderPaused stops the leader's process for a while, as a machine that
// is suspended is: another one leads, and the old one gives nothing from before
// when it goes on.
func TestF05LeaderPaused(t *testing.T) {
	pauses := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}
	r := start(t, harness.Config{}, silent)
	for i := range r.cycles(t, 3, 40) {
		length := pauses[i%len(pauses)]
		if i >= 2*len(pauses) { // only in a full run
			length = []time.Duration{10 * time.Second, time.Minute}[i%10/9]
		}
		leader := r.c.Leader(t)
		term := termOf(t, leader)
		r.traffic.Thick(t)
		leader.Process.Signal(t, syscall.SIGSTOP)
		if length > time.Second/2 {
			r.failsOver(t, r.c.Others(leader)[i%2])
		}
		after(length)
		leader.Process.Signal(t, syscall.SIGCONT)
		r.wakes(t, leader)
		if length > time.Second/2 {
			// It learns who leads, and serves, before it has written the newer term.
			harness.Eventually(t, 5*time.Second, "the paused node's newer term", func(context.Context) error {
				if termOf(t, leader) == term {
					return fmt.Errorf("it is still %d, after a pause of %s", term, length)
				}
				return nil
			})
		}
	}
	r.inTime(t, 700*time.Millisecond, 1200*time.Millisecond, 2*time.Second)
	r.ends(t)
}

// wakes waits until a node that was paused serves again. One that was paused in
// the middle of a write takes the pause for a disk that hung, and ends: whatever
// keeps it running starts it again.
func (r *row) wakes(t *testing.T, n *harness.Node) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "the paused node serves, or has ended", func(ctx context.Context) error {
		if !n.Process.Running() {
			return nil
		}
		_, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "woken"})
		return err
	})
	if !n.Process.Running() {
		endedAfter(t, n, "stalled")
		n.Start(t)
	}
	r.c.WaitReady(t)
}

// TestF22LeadershipTransferred transfers leadership round and round: hardly a call
// fails, and none is lost or counted twice.
func TestF22LeadershipTransferred(t *testing.T) {
	r := start(t, harness.Config{}, deadline)
	var watches []*harness.Watch
	for _, n := range r.c.Nodes {
		watches = append(watches, r.Watch(n))
	}
	for i := range r.cycles(t, 8, 600) {
		r.traffic.Thick(t)
		r.Stalls.Judge(t, func() error {
			to := r.c.Others(r.c.Leader(t))[i%2]
			if err := transfer(r.c.Nodes[i%3], to); err != nil {
				return err
			}
			if got := r.c.Leader(t); got != to {
				return fmt.Errorf("node %s leads, want %s", got.Tag, to.Tag)
			}
			return nil
		})
	}
	var given, refused int64
	for _, w := range watches {
		s := w.Seen()
		given, refused = given+s.Taken, refused+s.Refused
	}
	if refused*100 >= given {
		t.Errorf("%d calls failed and %d did not, want less than one in a hundred", refused, given)
	}
	r.ends(t)
}

// transfer transfers leadership, asking n.
func transfer(n, to *harness.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	got, err := n.Cluster.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: to.Tag})
	if err != nil {
		return fmt.Errorf("transferring leadership to %s through node %s: %w", to.Tag, n.Tag, err)
	}
	if got.LeaderTag != to.Tag {
		return fmt.Errorf("leadership went to %s, want %s", got.LeaderTag, to.Tag)
	}
	return nil
}
