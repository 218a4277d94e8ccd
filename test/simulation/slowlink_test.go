package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/history"
)

// TestANodeBehindASlowLinkJoins: its snapshot takes minutes and is sent once. The log still has
// the entries after it then, although there were other snapshots. The vote reaches the new node
// too: when another is lost, it makes up the quorum.
func TestANodeBehindASlowLinkJoins(t *testing.T) {
	const (
		rate  = 10_000 // bytes a second
		names = 500
		bulk  = names * 1900
	)
	p := sizedPlan(3)
	p.snapshotInterval, p.snapshotThreshold, p.trailingLogs = time.Second, 20, 1
	inClusterOf(t, p, func(w *world, c *client) {
		leader := c.leader(t)
		for i := range names {
			name := fmt.Sprintf("%s%03d", strings.Repeat("n", bulk/names), i)
			c.once(w.ctx, leader, history.Op{Kind: history.Next, Name: name, Count: 1}, c.next)
		}
		for range p.snapshotThreshold {
			c.take(w.ctx, leader) // The newest snapshot has all names: a message of entries with some takes longer than it may.
		}
		time.Sleep(settling)
		begin, joins, joined := time.Now(), churn{world: w, client: c}, w.add("")
		w.network.limit(joined.host, rate)
		for !joins.votes(w.ctx, joined) {
			if time.Since(begin) > 5*time.Minute {
				t.Error("the new node does not vote")
				return
			}
			c.take(w.ctx, leader)
			time.Sleep(200 * time.Millisecond)
		}
		got := w.network.sentTo(joined.host)
		t.Logf("it votes after %v and %d bytes", time.Since(begin), got)
		if got < bulk || got > 2*bulk {
			t.Errorf("%d bytes were sent to it, want one snapshot of %d or more", got, bulk)
		}
		lost := slices.DeleteFunc(slices.Clone(w.founders()), func(s *server) bool { return s == leader })[0]
		defer lost.hold()()
		lost.current().kill(false)
		for begin = time.Now(); !c.take(w.ctx, leader); {
			if time.Since(begin) > time.Second {
				t.Error("there is no quorum without one of the others")
				return
			}
		}
	})
}

// limit has so many bytes a second arrive at a host on each connection.
func (n *network) limit(host string, rate int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rate[host] = rate
}

// sentTo returns how much was sent to a host.
func (n *network) sentTo(host string) (bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for way, s := range n.sent {
		if way.to == host {
			bytes += s.bytes
		}
	}
	return bytes
}
