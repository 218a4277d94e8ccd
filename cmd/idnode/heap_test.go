package main

import (
	"runtime"
	"testing"
	"time"
)

// TestWhatIsHeldTakesTheRoomsPlace: it is given up for what is held, by which the
// collector is told at once, and is there again afterwards.
func TestWhatIsHeldTakesTheRoomsPlace(t *testing.T) {
	var held int64
	r := &room{held: func() int64 { return held }}
	for _, step := range []struct {
		held    int64
		pieces  int
		collect bool
	}{
		{0, 16, false},
		{1, 15, false}, // A collection costs more than that.
		{40 << 20, 6, true},
		{100 << 20, 0, true},
		{60 << 20, 1, false},
		{0, 16, false},
	} {
		held = step.held
		if collect := r.fit(); collect != step.collect || len(r.pieces) != step.pieces {
			t.Errorf("with %d bytes held: %d pieces, collected: %t", held, len(r.pieces), collect)
		}
	}
}

// TestTheRoomIsLookedAtAfterEachCollection: what is held changes all the time.
func TestTheRoomIsLookedAtAfterEachCollection(t *testing.T) {
	looked := make(chan struct{}, 100)
	defer patientCollector(func() int64 {
		looked <- struct{}{}
		return heapRoom
	})()
	for range 4 {
		runtime.GC()
		select {
		case <-looked:
		case <-time.After(20 * time.Second):
			t.Fatal("nobody looks at the room")
		}
	}
}
