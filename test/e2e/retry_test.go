package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// snapshotOften makes nodes take snapshots after a few entries, and keep so
// few entries that a node which missed some needs a snapshot.
var snapshotOften = failpoint.Tuning{SnapshotThreshold: 8, SnapshotInterval: time.Second, TrailingLogs: 4}

// TestRetry loses the answer of calls after they were committed and repeats
// them with the same request id through everything that can happen in
// between: the answer must be the same every time.
func TestRetry(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{Tuning: snapshotOften})
	calls := lostCalls(t, c)
	same := func(when string, nodes ...*harness.Node) {
		t.Helper()
		for _, n := range nodes {
			for _, call := range calls {
				call.repeat(t, n, when)
			}
		}
	}
	same("on another node", c.Nodes...)

	old := c.Leader(t)
	old.Process.Kill()
	same("after the leader was killed", c.Others(old)...)
	fill(t, c.Others(old)[0], 60) // more than the log keeps
	old.Start(t)
	c.WaitReady(t)
	same("on a node that was given a snapshot", old)

	for _, n := range c.Nodes {
		go n.Process.Kill()
	}
	for _, n := range c.Nodes {
		n.Process.Kill()
	}
	for _, n := range c.Nodes {
		n.Start(t)
	}
	c.WaitReady(t)
	same("after a restart of all nodes from snapshots", c.Nodes...)
	c.Agree(t)

	v := take(t, c.Nodes[0], harness.NewLedger(t), "retried")
	if want := int64(1 + len(lostIdentities)); v != want {
		t.Errorf("after all retries the next value is %d, want %d: a retry took a value", v, want)
	}
}

// lostCall is a call whose first answer was lost.
type lostCall struct {
	name string
	call func(context.Context, idnodev1.IdsServiceClient) (proto.Message, error)
	// first is the first answer that arrived.
	first proto.Message
}

var lostIdentities = []string{"one", "two", "three"}

// lostCalls makes calls through a relay that swallows the answers, and waits
// until each has been applied.
func lostCalls(t *testing.T, c *harness.Cluster) []*lostCall {
	t.Helper()
	n := c.Others(c.Leader(t))[0]
	relay, err := edge.Listen(n.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	client := harness.Dial(t, relay.Addr(), "")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := client.Ids.Generate(ctx, &idnodev1.GenerateRequest{}); err != nil {
		t.Fatal(err) // the connection must stand before its answers are lost
	}
	relay.Set(edge.LoseAnswers)
	calls := retriedCalls()
	for _, call := range calls {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		if _, err := call.call(short, client.Ids); err == nil {
			t.Fatalf("%s: an answer came through a relay that loses answers", call.name)
		}
		cancel()
	}
	for _, call := range calls {
		call.repeat(t, n, "at the same node")
	}
	return calls
}

func retriedCalls() []*lostCall {
	var calls []*lostCall
	for _, id := range lostIdentities {
		calls = append(calls,
			&lostCall{name: "identity " + id, call: func(ctx context.Context, ids idnodev1.IdsServiceClient) (proto.Message, error) {
				return ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "Retried|", RequestId: &idnodev1.RequestId{Id: id}})
			}})
	}
	return append(calls, &lostCall{name: "range", call: func(ctx context.Context, ids idnodev1.IdsServiceClient) (proto.Message, error) {
		return ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "retried", RequestId: &idnodev1.RequestId{Id: "range"}})
	}}, &lostCall{name: "claim", call: func(ctx context.Context, ids idnodev1.IdsServiceClient) (proto.Message, error) {
		return ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/Ayende", RequestId: &idnodev1.RequestId{Id: "claim"}})
	}})
}

// repeat makes the call again on n; the answer must be the first one.
func (l *lostCall) repeat(t *testing.T, n *harness.Node, when string) {
	t.Helper()
	var got proto.Message
	harness.Eventually(t, 10*time.Second, fmt.Sprintf("%s %s", l.name, when), func(ctx context.Context) (err error) {
		got, err = l.call(ctx, n.Ids)
		return err
	})
	if g, ok := got.(*idnodev1.GenerateResponse); ok {
		g.NodeTag = "" // says who served this call; all else is the first answer
	}
	if l.first == nil {
		l.first = got
	}
	if !proto.Equal(got, l.first) {
		t.Errorf("%s %s (node %s): %v, first answer %v", l.name, when, n.Tag, got, l.first)
	}
}

// fill writes entries into the log.
func fill(t *testing.T, n *harness.Node, entries int) {
	t.Helper()
	for i := range entries {
		harness.Eventually(t, 10*time.Second, "an entry", func(ctx context.Context) error {
			_, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: fmt.Sprint("fill", i%7)})
			return err
		})
	}
}
