package failpoint

import (
	"slices"
	"testing"
	"time"
)

// TestNothingByDefault: a program built without the tag does not know the
// variables.
func TestNothingByDefault(t *testing.T) {
	t.Setenv("FAILPOINT", "log-before:1")
	t.Setenv("FAILPOINT_CLOCK", "/does/not/exist")
	t.Setenv("FAILPOINT_TUNING", `{"EtagBlock": 1}`)
	for _, p := range All {
		Hit(p)
	}
	if off := time.Since(Now()); off > time.Minute {
		t.Errorf("the clock is wrong by %s", off)
	}
	if Tuned().EtagBlock != 0 {
		t.Error("it is tuned")
	}
}

func TestPointsDiffer(t *testing.T) {
	if points := slices.Compact(slices.Sorted(slices.Values(All))); len(points) != len(All) {
		t.Errorf("%d points of %d differ", len(points), len(All))
	}
}
