package store

import (
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// TestCompactionBesideAppends is named after a failure: Raft compacts on the
// goroutine that takes snapshots while it appends on another. An append that
// began before a compaction and ended after it put back the old first index, so
// the log seemed to have lost its first entries, and a healthy node ended.
func TestCompactionBesideAppends(t *testing.T) {
	f := newFatals()
	s := mustOpen(t, testConfig(t.TempDir(), f))
	must(t, s.StoreLogs(entries(1, 10)))
	const last = 600
	var both sync.WaitGroup
	both.Go(func() {
		for i := uint64(11); i <= last; i++ {
			if err := s.StoreLogs(entries(i, i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	both.Go(func() {
		for first := uint64(1); first < last-50; {
			end, err := s.LastIndex()
			if err != nil {
				t.Error(err)
				return
			}
			if end < first+5 {
				continue
			}
			if err := s.DeleteRange(first, end-5); err != nil {
				t.Error(err)
				return
			}
			first = end - 4
			// The library asks for entries it may have compacted; it must hear that
			// they are gone, not that they are damaged.
			if err := s.GetLog(1, new(raft.Log)); err == nil {
				t.Error("a compacted entry was read")
			}
		}
	})
	both.Wait()
	for _, err := range f.all() {
		t.Errorf("a healthy store ended: %v", err)
	}
}
