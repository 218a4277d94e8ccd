package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// mainLooks is in how many looks Raft's main goroutine must have stood still before it counts
// as hanging. Looks are counted, not time, as with the storage watchdog: a pause of the process
// is one look.
const mainLooks = 10

// mainWatch knows whether Raft's main goroutine hangs. A leader's that does can neither commit
// nor step down, while its heartbeats go on from other goroutines, so that no other is elected.
type mainWatch struct {
	raft *raft.Raft
	// limit is how long it may stand still: the storage watchdog's, which bounds its writes.
	limit time.Duration
	// progress rises while it works through what takes long: entries that are applied.
	progress func() uint64
	// installing reports whether it reads a snapshot, which may take any time.
	installing func() bool

	// still is in how many looks in a row it stood still.
	still atomic.Int32
}

// run looks until ctx ends.
func (w *mainWatch) run(ctx context.Context) {
	answer, before := w.ask(), w.progress()
	for ctx.Err() == nil {
		sleep(ctx, w.limit/mainLooks)
		now := w.progress()
		select {
		case <-answer:
			answer = w.ask()
			w.still.Store(0)
		default:
			if now != before || w.installing() {
				w.still.Store(0)
			} else {
				w.still.Add(1)
			}
		}
		before = now
	}
}

// ask has Raft's main goroutine refuse to bootstrap a configuration without servers: of all
// that the library (v1.7.3) lets a caller ask for, this alone is answered by that goroutine in
// each of its states, at once, and changes nothing. The channel is closed after the answer, or
// when Raft has ended.
func (w *mainWatch) ask() <-chan struct{} {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_ = w.raft.BootstrapCluster(raft.Configuration{}).Error() // The refusal is the answer.
	}()
	return answered
}

// err returns an error if the main goroutine hangs.
func (w *mainWatch) err() error {
	if w.still.Load() <= mainLooks {
		return nil
	}
	return fmt.Errorf("raft's main goroutine has stood still for longer than %s", w.limit)
}

// Alive returns an error if Raft hangs. It asks no other node.
func (n *Node) Alive() error {
	if e := n.up.Load(); e != nil {
		return e.mainWatch.err()
	}
	return nil
}
