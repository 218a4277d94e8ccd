package quorum_test

import (
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/quorum"
)

const lease = cluster.DefaultHeartbeat * 4 / 5

// TestGrace: by default a call in flight must learn within 0.6 s of a cut, of which a
// busy machine gets a third; and a leader whose lease is in order never looks as if it
// had lost its quorum.
func TestGrace(t *testing.T) {
	if latest := quorum.Grace(lease) + 2*quorum.Tick; latest > 400*time.Millisecond {
		t.Errorf("a cut is noticed after up to %v", latest)
	}
	for _, lease := range []time.Duration{10 * time.Millisecond, lease, 500 * time.Millisecond, 5 * time.Second} {
		if late := quorum.Grace(lease) - lease; late < 4*quorum.Tick {
			t.Errorf("with a lease of %v the watch may be late by %v only", lease, late)
		}
	}
}
