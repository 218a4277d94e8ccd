// Package outcome is the one vocabulary for the outcome of a proposal.
//
// A proposal that did not come back with a result has either certainly not
// happened (NotApplied) or may or may not have happened (Unknown). A function that
// returns an error for a proposal wraps it in an *Error that says which. An error
// without that wrapping means Unknown, because that is the only answer that is
// never wrong.
package outcome

import (
	"errors"
	"fmt"
)

// Outcome is the outcome of a proposal.
type Outcome uint8

const (
	// Applied means the state machine ran the operation and a majority has it
	// on disk. Whether the operation was refused is in its result.
	Applied Outcome = iota
	// NotApplied means the operation certainly is in no log and never will be.
	NotApplied
	// Unknown means the operation may have been applied, or may be later.
	Unknown
)

// String returns "applied", "not applied" or "unknown".
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case NotApplied:
		return "not applied"
	default:
		return "unknown"
	}
}

// Reason says why a proposal has no result. Its values travel between nodes:
// they are never renumbered.
type Reason uint8

const (
	// Unspecified is a reason with no name of its own.
	Unspecified Reason = iota
	// NoQuorum means there is no leader, or no majority that follows it.
	NoQuorum
	// NotLeader means the node asked does not lead; another one may.
	NotLeader
	// Overloaded means a bounded queue is full.
	Overloaded
	// Starting means the node is not ready yet.
	Starting
	// Stopping means the node is shutting down.
	Stopping
	// StorageFull means free space on disk is below the low-water mark.
	StorageFull
	// TooLarge means the operation does not fit into a log entry.
	TooLarge
	// Deadline means the caller's own deadline ended the wait, or the caller
	// went away.
	Deadline
	// LeadershipLost means the leader lost leadership with the proposal in flight.
	LeadershipLost
	// Storage means the log could not be written.
	Storage
	// SessionLost means the cluster no longer knows the session the group was
	// sent in.
	SessionLost
	// Invalid means the operation or its group is malformed: no leader takes it.
	Invalid
	// LeaderUnreachable means that there is a leader, and it does not answer this node.
	LeaderUnreachable
)

var reasonNames = [...]string{
	Unspecified:    "unspecified",
	NoQuorum:       "no quorum",
	NotLeader:      "not the leader",
	Overloaded:     "overloaded",
	Starting:       "starting",
	Stopping:       "stopping",
	StorageFull:    "storage full",
	TooLarge:       "too large",
	Deadline:       "deadline",
	LeadershipLost: "leadership lost",
	Storage:        "storage error",
	SessionLost:    "session lost",
	Invalid:        "invalid",

	LeaderUnreachable: "leader unreachable",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Error is why a proposal has no result.
type Error struct {
	// Outcome is NotApplied or Unknown.
	Outcome Outcome
	// Reason says why.
	Reason Reason
	// Err is the cause; may be nil.
	Err error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Outcome, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %v", e.Outcome, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewNotApplied returns an error that says the proposal certainly did not
// happen. cause may be nil.
func NewNotApplied(reason Reason, cause error) *Error {
	return &Error{Outcome: NotApplied, Reason: reason, Err: cause}
}

// NewUnknown returns an error that says the proposal may have happened. cause
// may be nil.
func NewUnknown(reason Reason, cause error) *Error {
	return &Error{Outcome: Unknown, Reason: reason, Err: cause}
}

// Of returns what err says about a proposal: Applied for nil, Unknown for an
// error that does not say.
func Of(err error) Outcome {
	if err == nil {
		return Applied
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return Unknown
}

// ReasonOf returns the reason in err, or Unspecified.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return Unspecified
}
