// Package logqueue writes a node's log from one goroutine. A write to a pipe that nobody
// reads, or to a disk that hangs, never returns: then lines are left out and counted, and
// nothing but the log suffers. Raft's main goroutine logs too.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// MaxBytes is how many bytes of lines wait for the log's reader; as many again may be
	// on their way to it.
	MaxBytes = 1 << 20
	// FlushLimit bounds the wait of Close for the last lines.
	FlushLimit = time.Second
)

// Queue has lines on their way to a log. It is safe for concurrent use.
type Queue struct {
	to io.Writer
	// tell writes how many lines were left out, without the queue.
	tell func(leftOut int) error
	// more has a value when there is something to write, or the queue was closed.
	more chan struct{}
	// done is closed when everything is written after Close.
	done chan struct{}

	mu      sync.Mutex
	waiting []byte
	leftOut int
	closed  bool
}

// New starts the goroutine that writes to a log, which ends after Close. It calls tell with the
// number of lines that were left out.
func New(to io.Writer, tell func(leftOut int) error) *Queue {
	q := &Queue{to: to, tell: tell, more: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer, for whole lines. It never waits.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(lines) > MaxBytes {
		q.leftOut += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	q.wake()
	return len(lines), nil
}

func (q *Queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *Queue) run() {
	defer close(q.done)
	for {
		lines, leftOut, closed := q.pop()
		switch {
		case len(lines) > 0:
			q.write(lines, leftOut)
		case closed:
			return
		default:
			<-q.more
		}
	}
}

// pop returns the lines that wait, and how many were left out behind them.
func (q *Queue) pop() (lines []byte, leftOut int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lines = q.waiting; len(lines) > 0 {
		leftOut, q.waiting, q.leftOut = q.leftOut, nil, 0
	}
	return lines, leftOut, q.closed
}

// write writes lines. Those that cannot be written are left out too; that is told as soon
// as something can be written again.
func (q *Queue) write(lines []byte, leftOut int) {
	n, err := q.to.Write(lines)
	if err != nil {
		leftOut += bytes.Count(lines[n:], []byte("\n"))
	}
	if leftOut == 0 || err == nil && q.tell(leftOut) == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leftOut += leftOut
}

// Close ends the queue and waits until everything is written, for FlushLimit at most. A
// nil queue has nothing to write.
func (q *Queue) Close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closed = true
	q.wake()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(FlushLimit):
	}
}
