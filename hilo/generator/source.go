package generator

import (
	"context"
	"errors"
	"time"

	"github.com/idnode/idnode/hilo"
)

var (
	// ErrClosed says that the generator was closed.
	ErrClosed = errors.New("generator: closed")
	// ErrCount means that a number of ids is not between 1 and MaxCount.
	ErrCount = errors.New("generator: the number of ids must be between 1 and 1048576")
	// ErrRange means that the source answered with an invalid range. The range is not
	// used.
	ErrRange = errors.New("generator: the source gave a wrong range")
)

// Range is a range of numbers that the cluster reserved for this generator alone, with
// the other parts of their ids. It is an immutable value: prefix and node tag are only
// joined with their own numbers.
type Range struct {
	// The numbers, from Low (at least 1) to High.
	hilo.Range
	// Granted is the size that the next request names as its last one. It is smaller
	// than Size() when the range came out longer after a return. 0 means Size().
	Granted int64
	// Prefix stands before the number: "users/".
	Prefix string
	// NodeTag follows the number and a dash. If it is empty, there is no dash: then the
	// prefix keeps the ids of the cluster's nodes apart.
	NodeTag string
	// At is the cluster's time of the range.
	At time.Time
	// FromReserve says that a node gave the range without the cluster, from numbers that
	// were granted to it before: they may lie below the last range.
	FromReserve bool
	// Token proves, when the range is given back, that it was this caller's. It may
	// hold any bytes.
	Token string
}

// Request is what a source tells the cluster about the range it asks for.
type Request struct {
	// Size is the wanted size (1 … hilo.MaxSize); 0 leaves it to the cluster, which
	// decides by use.
	Size int64
	// LastSize is the granted size of the last range, 0 if there was none.
	LastSize int64
	// LastRangeAt is the time of the last range, zero if there was none.
	LastRangeAt time.Time
	// LastMax is the greatest number of all ranges so far, 0 if there was none. The
	// next one must begin above it, unless it is from a reserve.
	LastMax int64
}

// RangeSource is where the ranges of one tag come from. Both methods must end soon
// after their context does. They are called by one goroutine at a time, but not
// always by the same.
type RangeSource interface {
	// Next reserves a range. It must never return one that was given to another client:
	// if the answer to a call is lost, it requests another. Its error goes to the waiting
	// callers unchanged.
	Next(ctx context.Context, r Request) (Range, error)
	// Return gives the numbers of the range above last back, all of them if last is
	// Low-1. That the cluster no longer takes them back is no error.
	Return(ctx context.Context, r Range, last int64) error
}
