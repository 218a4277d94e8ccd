package service

import "github.com/idnode/idnode/client/docid"

// Events are callbacks for metrics. Every call runs them on its own goroutine, so they must be
// quick, and safe for concurrent use. Databases are folded.
type Events struct {
	// Issued is called with how many ids an answer holds. A call that is answered
	// again because of its request id counts again.
	Issued func(database string, kind docid.Kind, n int64)
	// RangeIssued is called for each HiLo range, with how many numbers it has.
	RangeIssued func(database string, numbers int64)
	// RangeFromReserve is called for each HiLo range that came from this node's reserve.
	RangeFromReserve func(database string)
	// NumbersTaken is called with how many document numbers an answer holds.
	NumbersTaken func(database string, n int64)
	// Used is called with the name that ids of an answer belong to, and how many they are. Kind is
	// identity, hilo, server-side or series.
	Used func(kind, database, name string, n int64)
	// RangeReturned is called for each range whose unused rest was taken back,
	// with how many numbers that was.
	RangeReturned func(database string, numbers int64)
	// BackedUp is called for each backup that was written to its end.
	BackedUp func()
	// Refused is called for each call that ends with an error, with its reason.
	Refused func(reason string)
}

// issued reports ids of a name; empty for those that belong to none.
func (e *Events) issued(database string, kind docid.Kind, name string, n int64) {
	e.Issued(database, kind, n)
	if name != "" {
		e.Used(kind.String(), database, name, n)
	}
}

func (e *Events) rangeIssued(database, tag string, numbers int64) {
	e.RangeIssued(database, numbers)
	e.Used("hilo", database, tag, numbers)
}

func (e *Events) numbersTaken(database, series string, n int64) {
	e.NumbersTaken(database, n)
	e.Used("series", database, series, n)
}
