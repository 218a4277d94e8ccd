package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

const (
	// leaderWait is the default time a new call waits for a leader.
	leaderWait = 2 * time.Second
	// slack is what a busy machine may add to a bound that is not measured.
	slack = 500 * time.Millisecond
	// atOnce bounds a refusal that waits for nothing.
	atOnce = 200 * time.Millisecond
)

// settle waits until ids come and returns how many there are.
func settle(t *testing.T, ledger *harness.Ledger) int64 {
	t.Helper()
	start := ledger.Count("orders")
	harness.Eventually(t, 10*time.Second, "ids come", func(context.Context) error {
		if ledger.Count("orders") < start+200 {
			return fmt.Errorf("%d", ledger.Count("orders")-start)
		}
		return nil
	})
	return ledger.Count("orders")
}

// refuses checks that a cut off node refuses identities, ranges and claims:
// within the leader wait since the cut, and after that at once.
func refuses(t *testing.T, n *harness.Node, stalls *harness.Stalls, cut time.Time) {
	t.Helper()
	calls := map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error {
			_, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
			return err
		},
		"range": func(ctx context.Context) error {
			_, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders"})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := n.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"})
			return err
		},
	}
	// The first round may be waiting for a leader; nothing waits longer than that.
	for _, round := range []string{"within the leader wait", "at once"} {
		for what, call := range calls {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			begin := time.Now()
			err := call(ctx)
			took := time.Since(begin)
			cancel()
			if reason := harness.Reason(err); reason != "NO_QUORUM" && reason != "OUTCOME_UNKNOWN" {
				t.Errorf("%s on cut off node %s: %v (reason %q)", what, n.Tag, err, reason)
			}
			bound := atOnce
			if round != "at once" {
				bound = time.Until(cut.Add(leaderWait+slack)) + took
			}
			if took > max(bound, atOnce)+stalls.Between(begin, begin.Add(took)) {
				t.Errorf("%s on cut off node %s was refused after %s, want %s (%s)", what, n.Tag, took, round, bound)
			}
		}
	}
}

// stillGives checks that a cut off node gives what needs no quorum.
func stillGives(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{}); err != nil {
		t.Errorf("GUID on cut off node %s: %v", n.Tag, err)
	}
	r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 3})
	if err != nil {
		t.Errorf("server-side id on cut off node %s: %v", n.Tag, err)
		return
	}
	for _, b := range r.Blocks {
		ledger.Record("etags of "+n.Tag, "stillGives", b.First, b.Last)
	}
}

// taken counts the calls of take.
var taken atomic.Int64

// take takes one identity value through n. However often it has to ask, the call
// counts once, so that it leaves no hole.
func take(t *testing.T, n *harness.Node, ledger *harness.Ledger, name string) int64 {
	t.Helper()
	id := &idnodev1.RequestId{Id: fmt.Sprintf("take-%d", taken.Add(1))}
	var value int64
	harness.Eventually(t, 10*time.Second, "an identity from node "+n.Tag, func(ctx context.Context) error {
		if id.RetrySince == nil {
			s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
			if err != nil {
				return err
			}
			id.RetrySince = &s.AppliedIndex
		}
		r, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name, RequestId: id})
		if err != nil {
			return err
		}
		value = r.Blocks[0].First
		return nil
	})
	ledger.Record(name, "take from "+n.Tag, value, value)
	return value
}

// explained checks that only unknown outcomes left holes.
func explained(t *testing.T, ledger *harness.Ledger, load *harness.Load) {
	t.Helper()
	holes := ledger.Max("orders") - ledger.Count("orders")
	if unknown := load.Unknown.Load(); holes > unknown {
		t.Errorf("%d holes, but only %d calls ended without a known outcome", holes, unknown)
	}
	t.Logf("%d identities, %d holes, %d unknown outcomes", ledger.Count("orders"), holes, load.Unknown.Load())
}
