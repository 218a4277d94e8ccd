package simulation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestATransferSaysWhatHappened: an operator transfers leadership from a leader whose disk takes up to
// 450 ms for each write, alone and beside callers. It succeeds, within 5 s, and the answer names the
// leader.
func TestATransferSaysWhatHappened(t *testing.T) {
	for _, callers := range []int{0, 3} {
		for _, write := range []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond} {
			t.Run(fmt.Sprintf("write=%v/callers=%d", write, callers), func(t *testing.T) {
				inCluster(t, 3, func(w *world, c *client) {
					for i := range 2 {
						leader := c.leader(t)
						target := w.othersThan(leader)[i%2]
						// Half of it at least.
						leader.disk.change(func(f *diskFaults) { f.latency = write })
						stop := w.callUntil(w.founders(), callers)
						time.Sleep(500 * time.Millisecond)
						if err := c.tryTransfer(t, target); err != nil {
							t.Errorf("leadership does not move: %v", err)
						}
						stop()
						leader.disk.change(func(f *diskFaults) { f.latency = 0 })
						time.Sleep(15 * time.Second) // The disk no longer counts as slow.
					}
				})
			})
		}
	}
}

// TestATransferToHungDisksSaysWhatHappened: the voters cannot write for some time, so leadership moves
// late, or not at all.
func TestATransferToHungDisksSaysWhatHappened(t *testing.T) {
	for _, hung := range []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second} {
		t.Run(hung.String(), func(t *testing.T) {
			inCluster(t, 3, func(w *world, c *client) {
				others := w.othersThan(c.leader(t))
				until := time.Now().Add(hung)
				for _, s := range others {
					s.disk.change(func(f *diskFaults) { f.stallUntil = until })
				}
				stop := w.callUntil(others[:1], 1)
				time.Sleep(10 * time.Millisecond)
				t.Logf("the transfer says: %v", c.tryTransfer(t, others[0]))
				stop()
			})
		})
	}
}

// tryTransfer transfers leadership to a node, and compares what that said with who leads.
func (c *client) tryTransfer(t *testing.T, to *server) error {
	t.Helper()
	leader, before := c.leader(t), c.status(t, to).GetTerm()
	ctx, cancel := context.WithTimeout(c.world.ctx, 20*time.Second)
	defer cancel()
	begin := time.Now()
	reply, err := c.cluster(to).TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: to.tag()})
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("the transfer took %v", took)
	}
	after := c.status(t, to)
	switch {
	case err == nil && (reply.GetLeaderTag() != to.tag() || after.GetLeaderTag() != to.tag() || after.GetTerm() == before):
		t.Errorf("%s leads, the status says %s in term %d after %d", reply.GetLeaderTag(), after.GetLeaderTag(), after.GetTerm(), before)
	case err != nil && status.Code(err) != codes.Aborted:
		time.Sleep(settling)
		if now := c.status(t, leader); now.GetTerm() != before || now.GetLeaderTag() != leader.tag() {
			t.Errorf("%v: but node %q leads in term %d after %d", err, now.GetLeaderTag(), now.GetTerm(), before)
		}
	}
	return err
}

// callUntil has callers take identities, each at a node, until the returned function is called.
func (w *world) callUntil(nodes []*server, callers int) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	for i := range callers {
		w.running.Go(func() {
			defer func() { done <- struct{}{} }()
			c := newClient(w, i+1)
			defer c.close()
			for ctx.Err() == nil {
				c.take(ctx, nodes[i%len(nodes)])
				time.Sleep(betweenTries)
			}
		})
	}
	return func() {
		cancel()
		for range callers {
			<-done
		}
	}
}
