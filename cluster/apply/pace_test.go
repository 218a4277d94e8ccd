package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter takes its time for each write.
type slowWriter struct {
	takes time.Duration
	got   int
	err   error
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	time.Sleep(w.takes) // Within synctest: no time passes outside.
	w.got += len(b)
	return len(b), nil
}

// TestASnapshotIsWrittenInAQuarterOfTheTime: three parts of rest follow each part
// of work, and a rest is bounded.
func TestASnapshotIsWrittenInAQuarterOfTheTime(t *testing.T) {
	for _, test := range []struct{ takes, want time.Duration }{
		{0, 0},
		{2 * time.Millisecond, 8 * time.Millisecond},
		{time.Second, time.Second + maxPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow := &slowWriter{takes: test.takes}
			begin := time.Now()
			w := newPacedWriter(context.Background(), slow)
			for range 10 {
				if n, err := w.Write([]byte("data")); n != 4 || err != nil {
					t.Fatal(n, err)
				}
			}
			if took := time.Since(begin); took != 10*test.want || slow.got != 40 {
				t.Errorf("ten writes of %v took %v, want %v; %d bytes came", test.takes, took, 10*test.want, slow.got)
			}
		})
	}
}

// TestAStopEndsASnapshot: a node that stops does not wait until its snapshot is
// written, and what the disk says is passed on.
func TestAStopEndsASnapshot(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newPacedWriter(ctx, &slowWriter{})
	if _, err := w.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := w.Write([]byte("data")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the stop: %v", err)
	}
	full := errors.New("disk full")
	if _, err := newPacedWriter(context.Background(), &slowWriter{err: full}).Write([]byte("data")); !errors.Is(err, full) {
		t.Errorf("%v, want that the disk is full", err)
	}
}
