package heap

import (
	"runtime"
	"testing"
	"time"
)

// TestPercentFor: the heap grows by what is in use and by the room, whatever its size.
func TestPercentFor(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		inUse uint64
		room  int64
		want  int
	}{
		{0, heapRoom, 1700},
		{4 * mib, heapRoom, 1700},
		{64 * mib, heapRoom, 200},
		{1024 * mib, heapRoom, 106},
		{64 * mib, 16 * mib, 125},
		{64 * mib, 0, 100},
		{64 * mib, -5 * mib, 100},
	} {
		if got := percentFor(tt.inUse, tt.room); got != tt.want {
			t.Errorf("%d in use, room of %d: %d, want %d", tt.inUse, tt.room, got, tt.want)
		}
	}
}

// TestTheRoomIsAdjustedAfterEachCollection: what is held changes all the time.
func TestTheRoomIsAdjustedAfterEachCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	asked := make(chan struct{}, 100)
	defer Relax(func() int64 {
		asked <- struct{}{}
		return heapRoom
	})()
	<-asked // at the start
	late := time.After(20 * time.Second)
	for adjusted := 0; adjusted < 4; {
		// A collection that runs while the room is adjusted is not the next one.
		runtime.GC()
		select {
		case <-asked:
			adjusted++
		case <-late:
			t.Fatalf("the room was adjusted %d times", adjusted)
		default:
		}
	}
}
