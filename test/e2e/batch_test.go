package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// batchRounds is how often a batch is sent, batchGood how many of its calls
	// must succeed.
	batchRounds = 20
	batchGood   = 96
)

// badCalls are calls that the replicated state itself refuses: nothing before it
// can know.
var badCalls = []refusal{
	{"taken id", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
		_, err := ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/taken"})
		return err
	}, codes.AlreadyExists, "ID_CLAIMED", ""},
	{"counter at its end", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
		_, err := ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "last"})
		return err
	}, codes.OutOfRange, "COUNTER_EXHAUSTED", ""},
	{"unexpected value", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
		expected := int64(1)
		_, err := ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "last", Value: 5, Expected: &expected})
		return err
	}, codes.Aborted, "CONCURRENCY", ""},
	{"no such identity", func(ctx context.Context, ids idnodev1.IdsServiceClient) error {
		_, err := ids.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "nobody"})
		return err
	}, codes.NotFound, "IDENTITY_NOT_FOUND", ""},
}

// batch makes good and bad calls on n at the same moment and returns the values
// that the good ones took, in ascending order. Each bad call must fail as it
// should, and no other.
func batch(t *testing.T, n *harness.Node) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	begin := make(chan struct{})
	values := make([]int64, batchGood)
	var calls sync.WaitGroup
	for i := range values {
		calls.Go(func() {
			<-begin
			r, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
			if err != nil {
				t.Errorf("a good call among bad ones: %v", err)
				return
			}
			values[i] = r.Blocks[0].First
		})
	}
	for _, bad := range badCalls {
		calls.Go(func() {
			<-begin
			if err := bad.call(ctx, n.Ids); status.Code(err) != bad.code || harness.Reason(err) != bad.reason {
				t.Errorf("%s: %v, want %s %s", bad.name, err, bad.code, bad.reason)
			}
		})
	}
	close(begin)
	calls.Wait()
	slices.Sort(values)
	return values
}

// TestBadCallsAmongGoodOnes: calls that share a log entry with a bad one do not
// notice it.
func TestBadCallsAmongGoodOnes(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	leader := c.Leader(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := leader.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/taken"}); err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Ids.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "last", Value: 1<<63 - 1}); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for _, n := range []*harness.Node{leader, c.Others(leader)[0]} {
		before := view(t, leader).AppliedIndex
		for round := range batchRounds {
			values := batch(t, n)
			if first, end := values[0], values[len(values)-1]; first != last+1 || end != last+batchGood {
				t.Fatalf("round %d on node %s: the values %d to %d follow %d: %v", round, n.Tag, first, end, last, values)
			}
			last += batchGood
		}
		entries := view(t, leader).AppliedIndex - before
		t.Logf("node %s: %d calls in %d log entries", n.Tag, batchRounds*(batchGood+len(badCalls)), entries)
		if entries > batchRounds*batchGood/2 {
			t.Errorf("%d log entries: the calls did not share any, so this shows nothing", entries)
		}
	}
	if counts := view(t, leader).Counts; counts.Claims != 1 || counts.Identities != 2 {
		t.Errorf("bad calls changed the state: %v", counts)
	}
	c.Agree(t)
}
