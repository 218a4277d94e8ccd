package raftguard

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
)

// maxMisses is the number of consecutive checks that Raft's main goroutine may miss before it
// counts as hanging. Checks are counted, not time, as with the storage watchdog: a pause of the
// process is one check.
const maxMisses = 10

// MainWatch knows whether Raft's main goroutine hangs. A leader's that does can neither commit
// nor step down, while its heartbeats go on from other goroutines, so that no other is elected.
type MainWatch struct {
	Raft *raft.Raft
	// Limit is how long it may not answer: the storage watchdog's, which bounds its writes.
	Limit time.Duration
	// Progress rises while it works through what takes long: entries that are applied.
	Progress func() uint64
	// Installing reports whether it reads a snapshot, which may take any time.
	Installing func() bool

	// misses are the checks in a row in which it neither answered nor progressed.
	misses atomic.Int32
}

func (w *MainWatch) Duty() duty.Duty {
	answer, before := w.ask(), w.Progress()
	check := func(time.Time) duty.Task {
		now := w.Progress()
		progressed := now != before || w.Installing()
		select {
		case <-answer:
			answer, progressed = w.ask(), true
		default:
		}
		if progressed {
			w.misses.Store(0)
		} else {
			w.misses.Add(1)
		}
		before = now
		return nil
	}
	return duty.Duty{Name: "main goroutine", Every: w.Limit / maxMisses, Check: check}
}

// ask has Raft's main goroutine refuse to bootstrap a configuration without servers: of all
// that the library (v1.7.3) lets a caller ask for, this alone is answered by that goroutine in
// each of its states, at once, and changes nothing. The channel is closed after the answer, or
// when Raft has ended.
func (w *MainWatch) ask() <-chan struct{} {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_ = w.Raft.BootstrapCluster(raft.Configuration{}).Error() // The refusal is the answer.
	}()
	return answered
}

// Err returns an error if the main goroutine hangs.
func (w *MainWatch) Err() error {
	if w.misses.Load() <= maxMisses {
		return nil
	}
	return fmt.Errorf("raft's main goroutine has hung for longer than %s", w.Limit)
}
