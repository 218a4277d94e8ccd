package commit

import (
	"context"
	"math"
	"sync"
	"time"
)

// queue holds the queued operations, oldest first. It is a linked list through the waiters,
// so that a caller that leaves is removed in constant time. The Gatherer's lock guards it.
type queue struct {
	head, tail *waiter
	length     int
	bytes      int
	// since is when the oldest operation was queued, or later: the clock is read once for
	// each group, not for each operation.
	since time.Time
}

// operationHead is the overhead of an operation in a group, a tag and a length, for
// operations below 2 MiB.
const operationHead = 4

// cost is an operation's share of a group's bytes.
func cost(operation []byte) int { return operationHead + len(operation) }

func (q *queue) push(w *waiter) {
	w.state, w.prev, w.next = queued, q.tail, nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.count(w, 1)
}

// pushFront puts w back at the head, so that it does not wait a second time.
func (q *queue) pushFront(w *waiter) {
	w.state, w.prev, w.next = queued, nil, q.head
	if q.head == nil {
		q.tail = w
	} else {
		q.head.prev = w
	}
	q.head = w
	q.count(w, 1)
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.count(w, -1)
}

func (q *queue) count(w *waiter, sign int) {
	q.length += sign
	q.bytes += sign * cost(w.operation)
}

// pop moves the oldest operations to dst: at most limit operations, at most bytes in
// size, and with results of at most results bytes. It returns dst and the operations' size.
// The oldest operation always goes.
func (q *queue) pop(dst []*waiter, limit, bytes, results int) ([]*waiter, int) {
	size := 0
	for w := q.head; w != nil && limit > 0; w = q.head {
		c := cost(w.operation)
		if size > 0 && (size+c > bytes || w.resultBound > results) {
			break
		}
		results -= w.resultBound
		q.remove(w)
		w.state = taken
		dst = append(dst, w)
		size += c
		limit--
	}
	return dst, size
}

func (q *queue) drain() []*waiter {
	all, _ := q.pop(make([]*waiter, 0, q.length), q.length, q.bytes, math.MaxInt)
	return all
}

type waiterState uint8

const (
	// queued means that the operation is in the queue and can be removed.
	queued waiterState = iota
	// taken means that it is in a group, whose outcome answers it.
	taken
	// abandoned means that its caller left after it was taken.
	abandoned
)

// waiter is one operation and the caller that waits for it. The Gatherer's lock guards
// its links and its state. result and err belong to the answering goroutine until it sends
// on done, and then to the caller.
//
// Invariant: done is sent on at most once per use, and a waiter returns to the pool only
// after that send was received, or if it never was in a group. Otherwise a late answer
// would reach the wrong caller.
type waiter struct {
	prev, next *waiter
	operation  []byte
	// resultBound is the greatest number of bytes of the result: see Config.ResultBound.
	resultBound int
	// caller is the context of the caller, for spans of groups.
	caller context.Context
	state  waiterState
	// enqueuedAt is the Gatherer's clock when the wait began.
	enqueuedAt time.Duration
	result     []byte
	err        error
	done       chan struct{}
}

// waiterPool saves the allocations of a waiter and its channel.
type waiterPool struct{ pool sync.Pool }

func (p *waiterPool) get(caller context.Context, operation []byte) *waiter {
	w, ok := p.pool.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.caller, w.operation = caller, operation
	return w
}

func (p *waiterPool) put(w *waiter) {
	*w = waiter{done: w.done}
	p.pool.Put(w)
}

// answer ends the wait of w's caller. The answering goroutine must not use w afterwards.
func (w *waiter) answer(result []byte, err error) {
	w.result, w.err = result, err
	w.done <- struct{}{}
}
