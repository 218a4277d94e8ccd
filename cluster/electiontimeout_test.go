package cluster

import (
	"testing"
	"time"
)

// TestTheElectionTimeoutFollowsTheDisk: it holds four writes, stays while it is enough and
// less than twice as long, and is never shorter than configured.
func TestTheElectionTimeoutFollowsTheDisk(t *testing.T) {
	e := newElectionTimeout(250*time.Millisecond, nil)
	for _, tt := range []struct{ took, want time.Duration }{
		{time.Millisecond, 250 * time.Millisecond},
		{60 * time.Millisecond, 250 * time.Millisecond},
		{100 * time.Millisecond, 400 * time.Millisecond},
		{60 * time.Millisecond, 400 * time.Millisecond},
		{500 * time.Millisecond, 2 * time.Second},
		{300 * time.Millisecond, 2 * time.Second},
		{100 * time.Millisecond, 400 * time.Millisecond},
		{time.Minute, 16 * time.Second},
		{time.Millisecond, 250 * time.Millisecond},
	} {
		if e.current = e.after(tt.took); e.current != tt.want {
			t.Errorf("after a write of %v it is %v, want %v", tt.took, e.current, tt.want)
		}
	}
}
