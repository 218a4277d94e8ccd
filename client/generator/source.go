package generator

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrClosed means that the generator was closed.
	ErrClosed = errors.New("generator: closed")
	// ErrCount means that a requested number of ids is not between 1 and MaxCount.
	ErrCount = errors.New("generator: the number of ids must be between 1 and 1048576")
	// ErrSize means that the size of a range is not between 1 and MaxCount. Its text is that of hilo.
	ErrSize = errors.New("hilo: the size of a range must be between 1 and 1048576")
	// ErrRange means that the source answered with an invalid range. The range is not
	// used.
	ErrRange = errors.New("generator: the source gave a wrong range")
)

// Range is a range of numbers that the cluster reserved for this generator alone, with
// the other parts of the ids. It is an immutable value: prefix and node tag are joined only
// with the range's own numbers.
type Range struct {
	// The numbers, from Low (at least 1) to High, both included.
	Low, High int64
	// Granted is the size that the next request states as its last size. It is smaller than
	// Size() if the range is longer because of a return. 0 means Size().
	Granted int64
	// Prefix precedes the number: "users/".
	Prefix string
	// NodeTag follows the number and a dash. If it is empty, the id ends with the number;
	// then the prefix differs between the cluster's nodes.
	NodeTag string
	// At is the cluster's time at which the range was issued.
	At time.Time
	// FromReserve means that a node gave the range without the cluster, from numbers that
	// were granted to it in advance: they may lie below the last range.
	FromReserve bool
	// Token authorizes giving the range back. It is opaque.
	Token string
}

// Size returns how many numbers the range has.
func (r Range) Size() int64 { return r.High - r.Low + 1 }

// Request is a source's request for a range.
type Request struct {
	// Size is the wanted size (1 … MaxCount); 0 leaves it to the cluster, which
	// decides by use.
	Size int64
	// LastSize is the granted size of the last range, 0 if there was none.
	LastSize int64
	// LastRangeAt is the time of the last range, zero if there was none.
	LastRangeAt time.Time
	// LastMax is the greatest number of all ranges so far, 0 if there was none. The next
	// range must begin above it, unless it is from a reserve.
	LastMax int64
}

// RangeSource is the source of one tag's ranges. Both methods must return soon after their
// context has ended. They are called by one goroutine at a time, not always the same.
type RangeSource interface {
	// Next reserves a range. It must never return a range that was given to another client:
	// if the answer to a call is lost, it requests another range. Its error goes to the
	// waiting callers unchanged.
	Next(ctx context.Context, r Request) (Range, error)
	// Return gives the numbers of the range above last back, all of them if last is Low-1.
	// It returns no error if the cluster no longer accepts them.
	Return(ctx context.Context, r Range, last int64) error
}
