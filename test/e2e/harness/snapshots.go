package harness

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// snapshotTick is how often the watch looks: a small part of the time that a
// snapshot takes that can hold anybody up.
const snapshotTick = 2 * time.Millisecond

// SnapshotWatch finds out when nodes write snapshots: a snapshot that is not
// finished lies beside the others with a name that ends with .tmp. It is safe for
// concurrent use.
type SnapshotWatch struct {
	nodes []*Node
	stop  func()

	mu    sync.Mutex
	taken SnapshotTimes
	// open is the place in taken of each snapshot that is being written.
	open    map[string]int
	written int
	last    time.Time
}

// SnapshotTimes are the times at which snapshots were written, by beginning.
type SnapshotTimes struct{ periods []period }

type period struct{ from, to time.Time }

// WatchSnapshots watches until Stop.
func WatchSnapshots(t testing.TB, nodes []*Node) *SnapshotWatch {
	t.Helper()
	w := &SnapshotWatch{nodes: nodes, open: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	w.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(w.stop)
	return w
}

// Stop ends the watch; a snapshot that is being written counts until now.
func (w *SnapshotWatch) Stop() SnapshotTimes {
	w.stop()
	return w.taken
}

// Written is how many snapshots were written since the watch began, and when the
// newest was finished.
func (w *SnapshotWatch) Written() (int, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written, w.last
}

func (w *SnapshotWatch) run(ctx context.Context) {
	ticker := time.NewTicker(snapshotTick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, n := range w.nodes {
			w.look(n)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func (w *SnapshotWatch) look(n *Node) {
	now := time.Now()
	drafts, _ := filepath.Glob(filepath.Join(n.DataDir, "snapshots", "*.tmp")) // The pattern is valid.
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, draft := range drafts {
		if _, known := w.open[draft]; !known {
			w.open[draft] = len(w.taken.periods)
			w.taken.periods = append(w.taken.periods, period{from: now})
		}
		w.taken.periods[w.open[draft]].to = now
	}
	for draft := range w.open {
		if strings.HasPrefix(draft, n.DataDir+string(filepath.Separator)) && !slices.Contains(drafts, draft) {
			delete(w.open, draft)
			w.written, w.last = w.written+1, now
		}
	}
}

// Count is how many snapshots there were.
func (s SnapshotTimes) Count() int { return len(s.periods) }

// Times is how long each took.
func (s SnapshotTimes) Times() []time.Duration {
	var all []time.Duration
	for _, x := range s.periods {
		all = append(all, x.to.Sub(x.from).Round(time.Millisecond))
	}
	return all
}

// Overlap says whether a snapshot was being written at some moment between from
// and to.
func (s SnapshotTimes) Overlap(from, to time.Time) bool {
	for _, x := range s.periods {
		if !from.After(x.to) && !to.Before(x.from) {
			return true
		}
	}
	return false
}
