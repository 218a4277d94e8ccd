// Package counterfile reads and writes lists of counters in foreign formats: a plain CSV, and
// RavenDB's export of a database.
//
// It parses the formats and does not check or fold names: the cluster does.
package counterfile

import (
	"errors"
	"fmt"
)

// CounterKind is the kind of a counter.
type CounterKind string

// The kinds, as written in a CSV.
const (
	// Identity is an identity; the value is the last value used.
	Identity CounterKind = "identity"
	// DeletedIdentity is a deleted identity, which keeps its last value.
	DeletedIdentity CounterKind = "deleted-identity"
	// HiLo is the counter of a collection's tag; the value is its Max.
	HiLo CounterKind = "hilo"
	// Claim is a claimed id, without a value.
	Claim CounterKind = "claim"
)

// Counter is one line of a list.
type Counter struct {
	// Database is empty where the form has none.
	Database string
	Kind     CounterKind
	Name     string
	// Value is 0 for a claim.
	Value int64
	// Peak is the greatest High of a HiLo counter, 0 where the form has none.
	Peak int64
}

// ErrForm means that a file has not the form that it should have.
var ErrForm = errors.New("the file has another form")

func badForm(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForm, fmt.Sprintf(format, args...))
}

// Each gets the counters of a file in their order; an error ends the reading.
type Each func(Counter) error
