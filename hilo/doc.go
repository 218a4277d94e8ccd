// Package hilo is the arithmetic of HiLo ranges: how large the next range of a
// tag is, where it lies, and what happens when a client gives one back.
//
// It owns the rules that keep ranges apart; a Counter is what the cluster keeps for one
// tag. It does not own the counters' keys, the clock (the time since the last range is an
// argument), tokens (they come from the proposer), prefixes, or the client's side, which
// takes numbers from a range: that is client/generator.
//
// Everything here is pure: no state, no clock, no randomness, no I/O. A Counter is
// a value; its methods return a changed one and leave the receiver as it was, also
// when they fail. So counters may be read and copied concurrently.
package hilo

import "errors"

const (
	// MinSize is the smallest size that NextSize gives, in numbers.
	MinSize = 32
	// MaxSize is the greatest size of a range that can be asked for, in numbers.
	// A range can come out larger after a return: see Counter.Next.
	MaxSize = 1 << 20
	// MaxAhead is how far a caller's last Max may be ahead of the stored one. It
	// bounds what one call with a wrong value can waste.
	MaxAhead = 1 << 32
	// MaxOutstanding is how many of a tag's newest ranges can still be given back.
	MaxOutstanding = 4
)

var (
	// ErrExhausted means that the range would end above 2^63-1.
	ErrExhausted = errors.New("hilo: the counter has no numbers left")
	// ErrLastMax means that a caller's last Max is more than MaxAhead above the stored
	// one.
	ErrLastMax = errors.New("hilo: the last maximum is too far ahead of the counter")
	// ErrSize means that a size is not between 1 and MaxSize.
	ErrSize = errors.New("hilo: the size of a range must be between 1 and 1048576")
	// ErrConflict means that Max is not what the caller expected, or that it would fall.
	ErrConflict = errors.New("hilo: the maximum is not the expected one")
)
