// Package identity is what an identity is: a number per name that the cluster
// agrees on, handed out in blocks of consecutive values, seeded, and stepping over
// values whose ids were claimed by hand.
//
// It owns the arithmetic of one identity's counter. It does not own names or keys
// (docid has the rules for them), the claims themselves (the caller walks them), or
// the question which identities exist.
//
// Everything here is pure: no state, no clock, no randomness, no I/O. A Counter is a
// value; its methods return a changed one and leave the receiver as it was, also
// when they fail.
package identity

import "errors"

const (
	// MaxCount is the greatest number of values that one call takes.
	MaxCount = 1_000_000
	// MaxPieces is the greatest number of pieces in which a block comes.
	MaxPieces = 64
)

var (
	// ErrExhausted means that the block would end above 2^63-1.
	ErrExhausted = errors.New("identity: the counter has no values left")
	// ErrCount means that a count is not between 1 and MaxCount.
	ErrCount = errors.New("identity: the count must be between 1 and 1000000")
	// ErrConflict means that the last value is not what the caller expected.
	ErrConflict = errors.New("identity: the last value is not the expected one")
)

// ExhaustedError means that there is no room for so many values.
type ExhaustedError struct {
	// Most is the greatest count for which there is room, above the same last value
	// and among the same claims.
	Most int64
}

func (e *ExhaustedError) Error() string { return ErrExhausted.Error() }

// Unwrap returns ErrExhausted.
func (e *ExhaustedError) Unwrap() error { return ErrExhausted }
