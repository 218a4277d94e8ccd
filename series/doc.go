// Package series is what a series of document numbers is: consecutive numbers in scopes,
// each given to a document's key. They are gapless: every gap has a recorded reason.
//
// It owns the numbers of one series: the number of each key, its state, and what a policy allows.
// It does not own the series' names, rights, the clock, or the choice of a date; package
// series/format has the texts.
//
// A number is taken for a key and is open; then it is confirmed, voided with a reason, or
// released. After a restore it may be unknown, until it is reconciled with the books. The same
// key has the same number for as long as the number is its own, so a caller that does not know
// the outcome of a call repeats it.
//
// The package is pure: no clock, no visible randomness, no I/O. Times are the cluster's, in
// nanoseconds since 1970 UTC; a time older than the newest counts as the newest. A failed call
// changes only what the time alone changes. One goroutine at a time may change a Series, without
// concurrent reads.
package series

import "time"

const (
	// MaxKeys bounds the keys of one call.
	MaxKeys = 1000
	// MaxKeyBytes is the greatest length of a key.
	MaxKeyBytes = 128
	// MaxLabelBytes is the greatest length of a label.
	MaxLabelBytes = 64
	// MaxTimeZoneBytes is the greatest length of a zone's name.
	MaxTimeZoneBytes = 64
	// MaxReasonBytes is the greatest length of a reason.
	MaxReasonBytes = 128
	// MaxUnknown bounds the numbers of a scope that one Resume adds.
	MaxUnknown = 100_000
	// MaxUnknownAtOnce bounds the numbers that one Resume adds.
	MaxUnknownAtOnce = 1_000_000
	// MaxBegins bounds the scopes that one definition has begin above 1.
	MaxBegins = 1000
	// MaxSecretBytes is how many bytes of a secret count.
	MaxSecretBytes = 32
	// MaxAllowed bounds the values that one definition allows.
	MaxAllowed = 100
	// MaxAllotments bounds the ranges that are allotted to a scope, and MaxNoteBytes the length of a note.
	MaxAllotments = 100
	MaxNoteBytes  = 64
	// MaxPassed bounds the numbers that one Take voids because it enters a number above them.
	MaxPassed = 10_000
	// MaxScopes is the greatest number of scopes of a series.
	MaxScopes = 1 << 20
	// MinExpiresIn is the shortest reservation that a caller may ask for, unless the
	// definition's is shorter.
	MinExpiresIn = time.Minute
	// MaxAheadDays is the greatest Definition.MaxAheadDays.
	MaxAheadDays = 3650
	// MaxExpiresIn is the longest reservation that ends.
	MaxExpiresIn = 3650 * 24 * time.Hour
)

// The reasons of numbers that no caller voided.
const (
	ReasonReleased = "released"
	ReasonExpired  = "expired"
	// ReasonNotInBooks is the default reason of unknown numbers that no document has.
	ReasonNotInBooks = "not in the books"
)
