package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

const (
	// streamWindow is how many calls a stream keeps in flight, streamCalls how
	// many it makes.
	streamWindow = 64
	streamCalls  = 3000
)

// streamer makes calls for identities over one Exchange stream, each with a
// request id of its own.
type streamer struct {
	node *harness.Node
	// left are the request ids of calls not made yet.
	left []string
	// inFlight are those of calls without a reply, by correlation number.
	inFlight map[uint64]string
	next     uint64
}

// unanswered are the request ids of all calls without a reply.
func (s *streamer) unanswered() []string {
	return append(slices.Collect(maps.Values(s.inFlight)), s.left...)
}

// fill returns a message with as many calls as the window has room for.
func (s *streamer) fill() *idnodev1.ExchangeRequest {
	req := &idnodev1.ExchangeRequest{}
	for len(s.left) > 0 && len(s.inFlight) < streamWindow {
		id := s.left[0]
		s.left = s.left[1:]
		s.next++
		s.inFlight[s.next] = id
		req.Calls = append(req.Calls, &idnodev1.Call{Correlation: s.next, Call: &idnodev1.Call_NextIdentity{
			NextIdentity: &idnodev1.NextIdentityRequest{Name: "orders", RequestId: &idnodev1.RequestId{Id: id}},
		}})
	}
	return req
}

// run makes calls until all have a reply or the stream ends.
func (s *streamer) run(ctx context.Context, ledger *harness.Ledger) error {
	s.inFlight = make(map[uint64]string)
	stream, err := s.node.Ids.Exchange(ctx)
	if err != nil {
		return err
	}
	for len(s.left)+len(s.inFlight) > 0 {
		if req := s.fill(); len(req.Calls) > 0 {
			if err := stream.Send(req); err != nil {
				_, err = stream.Recv() // Says why.
				return err
			}
		}
		res, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, reply := range res.Replies {
			if e := reply.GetError(); e != nil {
				return fmt.Errorf("a call failed: %s: %s", codes.Code(e.Code), e.Message)
			}
			for _, b := range reply.GetNextIdentity().GetBlocks() {
				ledger.Record("orders", "stream to "+s.node.Tag, b.First, b.Last)
			}
			delete(s.inFlight, reply.Correlation)
		}
	}
	return stream.CloseSend()
}

// TestStreamsThroughAFailover kills the leader under three busy streams. Those to
// the other nodes do not notice; what the lost one left unanswered is asked again
// elsewhere. In the end every call has a value of its own, and there is no hole.
func TestStreamsThroughAFailover(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	ledger := harness.NewLedger(t)
	leader := c.Leader(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	var running sync.WaitGroup
	lost := &streamer{}
	for _, n := range c.Nodes {
		s := &streamer{node: n}
		for i := range streamCalls {
			s.left = append(s.left, fmt.Sprintf("%s-%d", n.Tag, i))
		}
		if n == leader {
			lost = s
		}
		running.Go(func() {
			if err := s.run(ctx, ledger); err != nil && n != leader {
				t.Errorf("the stream to node %s: %v", n.Tag, err)
			}
		})
	}
	harness.Eventually(t, 20*time.Second, "values", func(context.Context) error {
		if n := ledger.Count("orders"); n < streamCalls/2 {
			return fmt.Errorf("%d values came", n)
		}
		return nil
	})
	leader.Process.Kill()
	killed := time.Now()
	running.Wait()
	t.Logf("the others were done after %s", time.Since(killed))

	again := &streamer{node: c.Others(leader)[0], left: lost.unanswered()}
	if len(again.left) == 0 {
		t.Error("the killed leader had answered everything: this shows nothing")
	}
	t.Logf("%d calls are asked again", len(again.left))
	if err := again.run(ctx, ledger); err != nil {
		t.Errorf("the calls asked again: %v", err)
	}
	count, highest := ledger.Count("orders"), ledger.Max("orders")
	if want := int64(streamCalls * len(c.Nodes)); count != want || highest != want {
		t.Errorf("%d values up to %d came, want %d", count, highest, want)
	}
	leader.Start(t)
	c.WaitReady(t)
	c.Agree(t)
}

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
	s := &streamer{node: n, left: []string{"one"}, inFlight: make(map[uint64]string)}
	if err := open.Send(s.fill()); err != nil {
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
