package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/edge"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// lossyCallers go in through each relay that loses answers.
const lossyCallers = 16

// TestF25LostAnswers loses the answers of calls on their way back, again and
// again; the callers repeat them through other nodes with the same request id,
// and each counts once and is answered the same.
func TestF25LostAnswers(t *testing.T) {
	tier.Long(t)
	const perCycle = 500
	r := start(t, harness.Config{}, 300*time.Millisecond)
	var relays []*edge.Proxy
	for _, n := range r.c.Nodes {
		relay, err := edge.Listen(n.GRPC)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { relay.Close() })
		relays = append(relays, relay)
		through := *n
		through.Client = harness.Dial(t, relay.Addr(), "")
		r.traffic.Add(&through, lossyCallers)
	}
	for range r.cycles(t, 2, 2000) {
		r.traffic.Thick(t)
		before := r.Repeats()
		for i := 0; r.Repeats() < before+perCycle; i++ {
			relay := relays[i%len(relays)]
			relay.Set(edge.LoseAnswers)
			lost := r.NotAnswered()
			harness.Eventually(t, 15*time.Second, "lost answers", func(context.Context) error {
				if n := r.NotAnswered() - lost; n < lossyCallers {
					return fmt.Errorf("%d", n)
				}
				return nil
			})
			relay.Set(edge.None)
		}
	}
	t.Logf("%d calls were repeated", r.Repeats())
	r.ends(t)
}
