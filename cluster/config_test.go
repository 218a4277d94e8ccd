package cluster

import (
	"reflect"
	"testing"
	"time"
)

// TestDefaultsThatFollow: what follows from the defaults that are settings.
func TestDefaultsThatFollow(t *testing.T) {
	c := Config{}.withDefaults()
	ms := time.Millisecond
	got := []any{c.Heartbeat, c.lease(), c.LeaderWait, c.SnapshotThreshold, c.TrailingLogs}
	want := []any{
		250 * ms, 200 * ms,
		2000 * ms,
		uint64(16_384), uint64(8_192),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
