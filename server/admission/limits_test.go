package admission

import (
	"strconv"
	"testing"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/apierror"
)

// TestTheRateHoldsInTheLongRun, whatever the size of the calls.
func TestTheRateHoldsInTheLongRun(t *testing.T) {
	table, err := rights.New(nil, []rights.Limit{{Principals: []string{"shop"}, IDsPerSecond: 5_000}})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1, 7, 5_000, 100_000} {
		c := new(limiter).of(fsm.Roles{Table: table, SetAt: 1}, "shop")
		now, taken := time.Unix(1_700_000_000, 0), int64(0)
		for end := now.Add(100 * time.Second); now.Before(end); now = now.Add(time.Millisecond) {
			for range 10 {
				if c.countIDs(now, size) != nil {
					break
				}
				taken += size
			}
		}
		if most := int64(5_000*101) + size; taken > most || taken < 5_000*99 {
			t.Errorf("in calls of %d: %d ids in 100 s, want 500,000 and at most one call more", size, taken)
		}
	}
}

// TestADebtIsNoBurst: ids that are counted afterwards leave callers no further ahead than before.
func TestADebtIsNoBurst(t *testing.T) {
	table, err := rights.New(nil, []rights.Limit{{Principals: []string{"shop"}, IDsPerSecond: 1_000}})
	if err != nil {
		t.Fatal(err)
	}
	c := new(limiter).of(fsm.Roles{Table: table, SetAt: 1}, "shop")
	c.Debit(time.Unix(1_700_000_000, 0), 1<<32)
	if got := c.ids.Burst(); got != 1_000 {
		t.Errorf("callers may be %d ids ahead", got)
	}
}

// TestTheRateOfNewNamesHolds over hours, with bounded memory, and the wait that a refusal
// names is long enough.
func TestTheRateOfNewNamesHolds(t *testing.T) {
	const perHour, hours = 2_000, 10
	names, begin := limitNewNames(perHour), time.Unix(1_700_000_000, 0)
	const most = perHour * (hours + 1)
	taken := 0
	for now := begin; now.Before(begin.Add(hours*time.Hour)) && taken <= most+1; {
		err := names.count(now, Target{Kind: TargetClaim, Database: "shop", Name: strconv.Itoa(taken)})
		if err != nil {
			now = now.Add(apierror.Of(err).RetryAfter)
			if err = names.count(now, Target{Kind: TargetClaim, Database: "shop", Name: strconv.Itoa(taken)}); err != nil {
				t.Fatalf("after the wait: %v", err)
			}
		}
		taken++
		if len(names.counted) > maxCounted {
			t.Fatalf("%d names are kept", len(names.counted))
		}
	}
	if taken > most+1 || taken < most-perHour {
		t.Errorf("%d new names in %d hours, want about %d", taken, hours, most)
	}
}
