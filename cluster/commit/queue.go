package commit

import (
	"math"
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

// take appends the oldest operations to dst: at most limit operations, at most bytes in
// size, and with results of at most results bytes. It returns dst and the operations' size.
// The oldest operation is always taken.
func (q *queue) take(dst []*waiter, limit, bytes, results int) ([]*waiter, int) {
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
	all, _ := q.take(make([]*waiter, 0, q.length), q.length, q.bytes, math.MaxInt)
	return all
}
