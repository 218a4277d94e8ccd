// Package generator is the client's side of HiLo: a Generator holds a range of numbers
// that the cluster reserved for it, and hands them out one by one without a call. One
// Generator is made per collection tag and shared by all goroutines that need ids of it.
//
// It owns when ranges are fetched and given back, and that every number of a range
// goes to one caller at most. It does not own where ranges come from: that is a
// RangeSource, which knows the tag, the network and its retries. Sizes and the rules
// of giving back are those of the package hilo, and are decided by the source.
//
// # How numbers go
//
// Taking a number is one atomic add on a counter that shares its cache line with
// nothing. When half of a range is taken, the next one is fetched in the background,
// so a steady caller never waits. Callers that find no number left wait in a queue,
// in order of arrival, and the next range goes to them first.
//
// A range whose answer was lost is never used: its numbers are a hole. So are those
// that a program held when it ended without Close.
package generator
