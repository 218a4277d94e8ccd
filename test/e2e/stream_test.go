package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestStreamsDoNotHoldUpAStop stops a node with a stream that its caller keeps
// open, and one whose caller does not read.
func TestStreamsDoNotHoldUpAStop(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	n := c.Leader(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open, err := n.Ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	call := &idnodev1.Call{Correlation: 1, Call: &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{Name: "orders"}}}
	if err := open.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}); err != nil {
		t.Fatal(err)
	}
	if res, err := open.Recv(); err != nil || res.Replies[0].GetNextIdentity() == nil {
		t.Fatalf("%v %v", res, err)
	}
	unread, err := n.Ids.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Template: "users/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unread.Recv(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	n.Process.Stop(t)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the node took %s to stop", took)
	}
	if res, err := open.Recv(); err == nil {
		t.Errorf("the stream goes on: %v", res)
	}
}
