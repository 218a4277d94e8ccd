// Package generator is the client's side of HiLo: a Generator holds a range of numbers
// that the cluster reserved for it, and hands them out one by one without a call. A client
// has one Generator per tag, shared by all its goroutines.
//
// The package owns when ranges are fetched and given back, and that every number of a range
// goes to one caller at most. It does not own where ranges come from: a RangeSource knows
// the tag, the network and the retries. Range sizes and the rules for giving back are those
// of package hilo, and are decided by the source.
//
// # How numbers are handed out
//
// Taking a number is one atomic add on a counter that has its cache line to itself. When
// half of a range is taken, the next range is fetched in the background, so a steady caller
// never waits. Callers that find no number left wait in a queue, in order of arrival, and
// the next range serves the queue first.
//
// A range whose answer was lost is never used: its numbers are a gap. So are the numbers
// held by a program that ended without Close.
//
// The package is for idnode's own use: its names may change with any release, but for the
// types that package client names too.
package generator
