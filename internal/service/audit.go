package service

import (
	"context"
	"errors"

	"github.com/idnode/idnode/internal/audit"
)

// Auditor keeps the record of what changed the cluster; *audit.Log is one.
type Auditor interface {
	// Write returns when the record is on disk.
	Write(r audit.Record) error
}

// change is what a call that is recorded has changed.
type change struct {
	// index is the log index of the change, 0 if there is none.
	index uint64
	// before and after are what was there and what is there now; nil if nothing is
	// known of it.
	before, after any
}

// audited makes a call that is recorded: that it is about to be made, and what
// became of it. r says what it is about. What cannot be recorded is not done; a
// call whose end cannot be recorded has happened all the same, and the log of the
// node says so.
func (s *Service) audited(ctx context.Context, r audit.Record, call func() (change, error)) error {
	if s.cfg.Audit == nil {
		_, err := call()
		return err
	}
	who := s.caller(ctx)
	r.Principal, r.Address, r.Node, r.Outcome = who.Principal, who.Address, s.confirmedTag(), audit.OutcomeIntended
	if err := s.cfg.Audit.Write(r); err != nil {
		return unavailable(ReasonAuditFailed, "the node cannot record the call, so it is not made", retryQuorum, err)
	}
	done, err := call()
	r.Outcome, r.Reason = outcomeOf(err)
	if err == nil {
		r.Before, r.After, r.Index = done.before, done.after, done.index
	}
	if failed := s.cfg.Audit.Write(r); failed != nil {
		s.cfg.Logger.ErrorContext(ctx, "what became of a call is not in the audit log", "event", r.Event, "outcome", r.Outcome, "error", failed)
	}
	return err
}

// outcomeOf returns what the record says of a call's error.
func outcomeOf(err error) (outcome, reason string) {
	var e *Error
	switch {
	case err == nil:
		return audit.OutcomeDone, ""
	case !errors.As(err, &e), e.Code == Internal:
		return audit.OutcomeUnknown, ReasonInternal
	case e.Reason == ReasonOutcomeUnknown:
		return audit.OutcomeUnknown, e.Reason
	default:
		return audit.OutcomeRefused, e.Reason
	}
}
