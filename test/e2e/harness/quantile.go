package harness

import (
	"slices"
	"time"
)

// QuantileOfTimes is the time that this share of the times, in thousandths, do not exceed; 0 if
// there are none.
func QuantileOfTimes(times []time.Duration, share int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)*share+999)/1000-1]
}
