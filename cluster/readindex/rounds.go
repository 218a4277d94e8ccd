package readindex

import (
	"context"
	"sync"

	"github.com/idnode/idnode/internal/outcome"
)

// rounds runs rounds in sequence, each for all callers that arrived before it began.
type rounds struct {
	run  func(ctx context.Context) (uint64, error)
	most int

	mu sync.Mutex
	// next is the round that new callers join; it has not begun.
	next    *round
	waiting int
	stopped bool

	wake     chan struct{}
	halt     context.Context
	haltNow  context.CancelFunc
	finished chan struct{}
}

// round is one round and its result. index and err are set before done is closed.
type round struct {
	waiters int
	done    chan struct{}
	index   uint64
	err     error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// newRounds starts the loop; Close ends it.
func newRounds(run func(ctx context.Context) (uint64, error)) *rounds {
	r := &rounds{run: run, most: maxWaiters, next: newRound(), wake: make(chan struct{}, 1), finished: make(chan struct{})}
	r.halt, r.haltNow = context.WithCancel(context.Background())
	go r.loop()
	return r
}

// ReadIndex returns an index up to which a read that begins now must have applied, found in a
// round that began after the call.
func (r *rounds) ReadIndex(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, outcome.NewNotApplied(outcome.Deadline, err)
	}
	mine, err := r.enter()
	if err != nil {
		return 0, err
	}
	defer r.exit()
	select {
	case <-mine.done:
		return mine.index, mine.err
	case <-ctx.Done():
		return 0, outcome.NewNotApplied(outcome.Deadline, ctx.Err())
	}
}

func (r *rounds) enter() (*round, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, outcome.NewNotApplied(outcome.Stopping, nil)
	}
	if r.waiting >= r.most {
		return nil, outcome.NewNotApplied(outcome.Overloaded, nil)
	}
	r.waiting++
	r.next.waiters++
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return r.next, nil
}

func (r *rounds) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}

// loop runs rounds until the end. It closes a round to new callers before the round does
// anything: that is the invariant of the package.
func (r *rounds) loop() {
	defer close(r.finished)
	for {
		select {
		case <-r.wake:
		case <-r.halt.Done():
		}
		if r.halt.Err() != nil {
			// Both may have been ready: no round begins after the end.
			return
		}
		if mine := r.begin(); mine.waiters > 0 {
			mine.index, mine.err = r.run(r.halt)
			close(mine.done)
		}
	}
}

func (r *rounds) begin() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.next
	r.next = newRound()
	return mine
}

// Close refuses new callers and ends the loop; waiters get NotApplied(Stopping).
func (r *rounds) Close() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.haltNow()
	<-r.finished
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next.waiters > 0 {
		r.next.err = outcome.NewNotApplied(outcome.Stopping, nil)
		close(r.next.done)
		r.next = newRound()
	}
}
