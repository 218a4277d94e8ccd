package client

import "testing"

// TestWhatIsNotUsedCostsNothing: without Observe and TraceParent a call allocates nothing for
// them.
func TestWhatIsNotUsedCostsNothing(t *testing.T) {
	r := &router{}
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		r.cfg.tell(Event{Kind: EventTry, Attempt: 1})
		if r.cfg.traceparent(ctx) != "" || r.cfg.traced(ctx) != ctx {
			t.Error("a span without a caller's")
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
