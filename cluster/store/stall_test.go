package store

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
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

// hangingLog is a log whose work in the background does not end.
type hangingLog struct {
	entryLog
	released chan struct{}
}

func (l hangingLog) Close() error {
	<-l.released
	return nil
}

// TestCloseDoesNotWaitForAHangingDisk: after a write has failed no watchdog is left
// that would end the process.
func TestCloseDoesNotWaitForAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFatals()
		s := &Store{
			guard: newGuard(Watchdog{Limit: DefaultLimit, Fatal: f.fatal}, slog.New(slog.DiscardHandler)),
			log:   hangingLog{released: make(chan struct{})}, backend: inmemBackend{raft.NewInmemStore()},
		}
		_ = s.guard.fail(errors.New("input/output error"))
		if err := s.Close(); !errors.Is(err, ErrStalled) {
			t.Errorf("it is closed: %v", err)
		}
		close(s.log.(hangingLog).released)
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
