// Package calllog bounds how much the logs of failed calls write: a node without
// a quorum refuses some ten thousand calls a second, and its log must stay
// readable, and its disk free. Each API decides about the content of a line.
package calllog

import (
	"sync"
	"time"
)

// MaxLines is how many lines per second a Budget allows.
const MaxLines = 5

// Budget allows MaxLines per second. The zero value is ready for use, and safe
// for concurrent use.
type Budget struct {
	mu     sync.Mutex
	since  time.Time
	lines  int
	silent int
}

// Take says whether a line may be written at now, and how many were not since
// the last one that was.
func (b *Budget) Take(now time.Time) (silent int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.since) >= time.Second {
		b.since, b.lines = now, 0
	}
	if b.lines >= MaxLines {
		b.silent++
		return 0, false
	}
	b.lines++
	silent, b.silent = b.silent, 0
	return silent, true
}
