package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/service"
)

// TestDefaultsAreThoseOfTheParts holds the numbers shown to the user together
// with those that the parts take for themselves where nothing is given. Were
// they apart, tests of the parts would try another program than the one that
// runs.
func TestDefaultsAreThoseOfTheParts(t *testing.T) {
	want := config.Default()
	want.HeartbeatTimeout = cluster.DefaultHeartbeat
	want.SnapshotBytes = cluster.DefaultSnapshotBytes
	want.StorageWatchdog = cluster.DefaultStallLimit
	want.StorageLowMark = cluster.DefaultFreeBytes
	want.CallTimeout = service.DefaultCallTimeout
	want.MaxInFlight = service.DefaultMaxInFlight
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Errorf("(-parts +configuration):\n%s", diff)
	}
}
