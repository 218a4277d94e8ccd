package cluster

import (
	"reflect"
	"testing"
	"time"
)

func TestTimings(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name    string
		timings Timings
		ok      bool
	}{
		{"defaults", Timings{}, true},
		{"slow heartbeat alone", Timings{Heartbeat: ms(1000)}, true},
		{"fast heartbeat alone", Timings{Heartbeat: ms(50)}, true},
		{"heartbeat too fast", Timings{Heartbeat: ms(10)}, false},
		{"election shorter than heartbeat", Timings{Heartbeat: ms(500), Election: ms(400)}, false},
		{"lease longer than heartbeat", Timings{Heartbeat: ms(300), Lease: ms(400)}, false},
		{"lease too short", Timings{Lease: ms(5)}, false},
		{"commit not shorter than heartbeat", Timings{Heartbeat: ms(300), Commit: ms(300)}, false},
	}
	for _, tt := range tests {
		if err := tt.timings.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestDefaultsThatFollow: what follows from the defaults that are settings.
func TestDefaultsThatFollow(t *testing.T) {
	c, _ := Config{}.withDefaults()
	ms := time.Millisecond
	got := []any{c.Timings, c.SlowLimit, c.LeaderWait, c.SnapshotThreshold, c.TrailingLogs}
	want := []any{
		Timings{Heartbeat: 250 * ms, Election: 250 * ms, Lease: 200 * ms, Commit: 20 * ms},
		500 * ms, 2000 * ms,
		uint64(16_384), uint64(8_192),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
