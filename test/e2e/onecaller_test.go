package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	// workers are an attacker's calls in flight, and judged the calls of another caller that
	// are looked at meanwhile.
	workers = 256
	judged  = 100
	// dearer is how much longer another caller may wait than while as many cheap calls are
	// refused: what a call makes the node do must not matter more than that it is made.
	dearer = 4
)

// TestWorkOfOneCaller: while one caller makes a node work as hard as it can, another is
// served about as during a flood of calls that are refused at once.
func TestWorkOfOneCaller(t *testing.T) {
	tier.Long(t)
	h := startHostile(t)
	series, ctx := h.node.Client.Series, t.Context()
	if _, err := series.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{Name: "bills", Definition: &idnodev1.SeriesDefinition{Format: "B-{number}"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var keys []string
		for j := range 1000 {
			keys = append(keys, fmt.Sprintf("%d-%d", i, j))
		}
		if _, err := series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "bills", Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
	attacker := harness.Dial(t, h.node.GRPC, h.certs)
	var template atomic.Int64
	cheap := h.besides(t, func(ctx context.Context) {
		_, _ = attacker.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{})
	})
	for name, call := range map[string]func(context.Context){
		"templates": func(ctx context.Context) {
			format := fmt.Sprintf("{number}{v0}{v1:2}{v2}{v3}IEN1DPWGHSZPWULdZSWEG0Ac{v4:1}XBLRX1QIeHYcUC0O1NBeUbB%d", template.Add(1))
			_, _ = attacker.Series.FormatNumber(ctx, &idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Format{Format: format}, Number: 1})
		},
		"verifications": func(ctx context.Context) {
			_, _ = attacker.Series.VerifySeries(ctx, &idnodev1.VerifySeriesRequest{Series: "bills"})
		},
		"reports": func(ctx context.Context) {
			_, _ = attacker.Series.ReportSeries(ctx, &idnodev1.ReportSeriesRequest{Series: "bills"})
		},
		"statuses": func(ctx context.Context) {
			_, _ = attacker.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
		},
	} {
		if half := h.besides(t, call); half > dearer*max(cheap, 5*time.Millisecond) {
			t.Errorf("%s: half of another caller's calls take more than %s, beside cheap ones %s", name, half, cheap)
		} else {
			t.Logf("%s: %s, beside cheap calls %s", name, half, cheap)
		}
	}
}

// besides makes calls of another caller while an attacker makes its own without a pause, and
// returns within which time half of them were answered. None may fail.
func (h *hostile) besides(t *testing.T, attack func(context.Context)) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	for range workers {
		attackers.Go(func() {
			for ctx.Err() == nil {
				attack(ctx)
			}
		})
	}
	var took []time.Duration
	for range judged {
		took = append(took, h.call(t, h.node.Client))
	}
	cancel()
	attackers.Wait()
	slices.Sort(took)
	return took[judged/2]
}
