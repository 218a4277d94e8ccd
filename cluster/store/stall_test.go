package store

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAWriteThatTakesTheWholeLimitIsStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		stalled := make(chan struct{})
		s := watchStall(time.Second, func() { close(stalled) })
		<-stalled
		if d := time.Since(start); d != time.Second {
			t.Errorf("stalled after %v", d)
		}
		s.end()
	})
}

// TestAPauseIsNoStall: a node that was paused for three seconds in the middle of a
// write took the pause for a hung disk and ended when it went on.
func TestAPauseIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watchStall(time.Second, func() { t.Error("stalled") })
		time.Sleep(850 * time.Millisecond)
		// What a pause of any length comes to: one more step.
		s.tick()
		s.end()
		time.Sleep(time.Minute)
	})
}
