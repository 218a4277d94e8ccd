package client

import (
	"testing"
	"time"
)

// TestOutage: a failure counts only if no node has answered since its try began, and a time without tries does not.
func TestOutage(t *testing.T) {
	const s, idle = time.Second, 10 * time.Second
	var o outage
	want := func(now, want time.Duration) {
		t.Helper()
		if lasts := o.lasts(now, idle); lasts != want {
			t.Errorf("after %v the outage lasts %v in place of %v", now, lasts, want)
		}
	}
	o.answer(2 * s)
	o.failure(1*s, 3*s) // At a dead node, while another answered.
	want(9*s, 0)
	o.failure(4*s, 5*s)
	want(9*s, 1*s) // Nothing was tried after the fifth second.
	o.failure(6*s, 8*s)
	want(9*s, 4*s)
	o.answer(9 * s)
	want(9*s, 0)
	o.failure(7*s, 10*s)
	want(11*s, 0)
	o.failure(11*s, 12*s)
	want(30*s, 0) // Idle.
	o.failure(30*s, 31*s)
	want(31*s, 1*s)
}
