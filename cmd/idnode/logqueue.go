package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// maxQueuedLog is how many bytes of lines wait for the log's reader; as many again may be
	// on their way to it.
	maxQueuedLog = 1 << 20
	// logFlushLimit bounds the wait for the last lines at the end of the process.
	logFlushLimit = time.Second
)

// logQueue writes a node's log from one goroutine. A write to a pipe that nobody reads, or to
// a disk that hangs, never returns: then lines are left out and counted, and nothing but the
// log suffers. Raft's main goroutine logs too.
type logQueue struct {
	to io.Writer
	// tell writes how many lines were left out, without the queue.
	tell func(leftOut int) error
	// more has a value when there is something to write, or the queue was closed.
	more chan struct{}
	// done is closed when everything is written after close.
	done chan struct{}

	mu      sync.Mutex
	waiting []byte
	leftOut int
	closed  bool
}

// newLogQueue starts the queue's goroutine, which ends after close.
func newLogQueue(to io.Writer, tell func(leftOut int) error) *logQueue {
	q := &logQueue{to: to, tell: tell, more: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer, for whole lines. It never waits.
func (q *logQueue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(lines) > maxQueuedLog {
		q.leftOut += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	q.wake()
	return len(lines), nil
}

// wake has run look again.
func (q *logQueue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// run writes what waits until the queue is closed.
func (q *logQueue) run() {
	defer close(q.done)
	for {
		lines, leftOut, closed := q.take()
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

// take returns the lines that wait, and how many were left out behind them.
func (q *logQueue) take() (lines []byte, leftOut int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lines = q.waiting; len(lines) > 0 {
		leftOut, q.waiting, q.leftOut = q.leftOut, nil, 0
	}
	return lines, leftOut, q.closed
}

// write writes lines. Those that cannot be written are left out too; that is told as soon
// as something can be written again.
func (q *logQueue) write(lines []byte, leftOut int) {
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

// close ends the queue and waits until everything is written, for logFlushLimit at most. A
// nil queue has nothing to write.
func (q *logQueue) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closed = true
	q.wake()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(logFlushLimit):
	}
}

// nodeLogger returns the logger of the nodes of this process. What else the command says goes
// the same way from here on. A write for which there is no reader any more fails: its SIGPIPE
// would end the process (os/signal, "SIGPIPE").
func (a *app) nodeLogger(level, format string) (*slog.Logger, error) {
	direct, err := newLogger(a.stderr, level, format)
	if err != nil {
		return nil, &usageError{err: err}
	}
	signal.Ignore(syscall.SIGPIPE)
	a.log = newLogQueue(a.stderr, func(leftOut int) error {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "the log's reader did not keep up, and lines are missing", 0)
		r.Add("lines_left_out", leftOut)
		return direct.Handler().Handle(context.Background(), r)
	})
	a.stderr = a.log
	return newLogger(a.stderr, level, format)
}
