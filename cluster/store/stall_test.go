package store

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
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

// hangingBackend is one that cannot be closed yet.
type hangingBackend struct {
	stableBackend
	released chan struct{}
}

func (b hangingBackend) Close() error {
	<-b.released
	return b.stableBackend.Close()
}

// TestCloseDoesNotWaitForAHangingDisk: after a write has failed no watchdog is left
// that would end the process.
func TestCloseDoesNotWaitForAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, testConfig(t.TempDir(), newFatals()))
		released := make(chan struct{})
		s.stable.backend = hangingBackend{s.stable.backend, released}
		_ = s.guard.fail(errors.New("input/output error"))
		if err := s.Close(); !errors.Is(err, ErrStalled) {
			t.Errorf("it is closed: %v", err)
		}
		close(released)
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

// TestASlowWriteIsReported: when it has been in flight for as long as the mark, and again
// when it ends. A quick one is not.
func TestASlowWriteIsReported(t *testing.T) {
	tests := map[string]struct {
		took time.Duration
		want []bool
	}{
		"quick": {499 * time.Millisecond, nil},
		"slow":  {501 * time.Millisecond, []bool{true, false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []bool
				w := Watchdog{Limit: 3 * time.Second, Slow: 500 * time.Millisecond, Fatal: newFatals().fatal, Slowed: func(slow bool) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, slow)
				}}
				started := time.Now()
				g := newGuard(w, slog.New(slog.DiscardHandler))
				err := g.write("a write", func() error {
					time.Sleep(tt.took)
					mu.Lock()
					defer mu.Unlock()
					if (len(got) == 1) != (len(tt.want) > 0) {
						t.Errorf("during the write: %v", got)
					}
					return nil
				})
				if err != nil || time.Since(started) != tt.took || !slices.Equal(got, tt.want) {
					t.Errorf("%v after %v: %v, want %v", err, time.Since(started), got, tt.want)
				}
			})
		})
	}
}
