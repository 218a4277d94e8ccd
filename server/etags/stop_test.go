package etags

import (
	"context"
	"testing"
)

// TestStopWithAnnouncementNotTakenOver: a node that is stopped while it starts
// must not tell the cluster of a clean stop whose values were never compared with
// the cluster's: the next start would believe a disk that was set back.
func TestStopWithAnnouncementNotTakenOver(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	r.take(5)
	r.stop()
	old := d.copy()
	r = start(t, w, d, true, nil)
	last := r.take(5000)
	await(t, func() bool { return ceiling(w) > last })
	r.crash(d)

	d.setBack(old)
	late := start(t, w, d, false, nil)
	d.closing = func() { late.keeper.Announced(w.announce()) }
	if err := late.keeper.Stop(context.Background()); err == nil {
		t.Error("a clean stop was recorded in the cluster though the disk was not compared with it")
	}
	d.closing = nil

	r = start(t, w, d, true, nil)
	if got := r.next(); got <= last {
		t.Errorf("etag %d again: %d was given", got, last)
	}
}
