package disk

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestADiskIsSlowForSomeTime: from a slow write on, until slowHold after the last one.
func TestADiskIsSlowForSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewWrites(slog.New(slog.DiscardHandler))
		is := func(hangs, slow bool) {
			t.Helper()
			if d.Hang() != hangs || d.Slow(time.Now()) != slow {
				t.Errorf("hangs %v, slow %v; want %v, %v", d.Hang(), d.Slow(time.Now()), hangs, slow)
			}
		}
		is(false, false)
		d.TakeIn(true)
		time.Sleep(time.Minute)
		is(true, true)
		d.TakeIn(true)
		d.TakeIn(false)
		is(true, true)
		d.TakeIn(false)
		is(false, true)
		time.Sleep(slowHold - time.Nanosecond)
		is(false, true)
		time.Sleep(time.Nanosecond)
		is(false, false)
	})
}
