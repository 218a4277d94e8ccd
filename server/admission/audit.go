package admission

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/server/apierror"
)

// Auditor keeps the record of changes to the cluster; *audit.Log implements it.
type Auditor interface {
	// Write returns when the record is on disk, or ctx has ended.
	Write(ctx context.Context, r audit.Record) error
	// Tail returns the newest lines, at most n, oldest first, each a JSON object.
	Tail(ctx context.Context, n int) ([]json.RawMessage, error)
}

// recordTimeout bounds the wait for a disk to take a record.
const recordTimeout = 2 * time.Second

// auditing records changes of the cluster, and denied calls.
type auditing struct {
	// log is nil for a node that records nothing.
	log  Auditor
	auth *authorizer
	// tag returns the tag that the cluster has confirmed, or "".
	tag    func() string
	logger *slog.Logger
	// denials bounds the records of denied calls, and denialsLeftOut counts the unrecorded
	// calls since the last record.
	denials        *rate.Limiter
	denialsLeftOut atomic.Int64
}

// Change is the effect of a recorded call.
type Change struct {
	Index uint64
	// before and after are the value before and after the call; nil if unknown.
	Before, After any
	// partly means that the change took effect though the call failed.
	Partly bool
}

// AuditTail returns the newest lines of this node's audit log, at most n, oldest first; nil if the
// node keeps none. It needs the right cluster, whose holders can grant themselves every other right.
func (c *Control) AuditTail(ctx context.Context, n int) ([]json.RawMessage, error) {
	return Call(ctx, c, "AuditTail", n, func(ctx context.Context, n int) ([]json.RawMessage, error) {
		if err := c.Authorize(ctx, rights.Cluster, "", ""); err != nil || c.log == nil {
			return nil, err
		}
		lines, err := c.log.Tail(ctx, n)
		if err != nil {
			return nil, apierror.Unavailable(apierror.ReasonAuditFailed, "the node cannot read its audit log", apierror.RetryQuorum, err)
		}
		return lines, nil
	})
}

// Audited makes a call and records it twice: before the call, and with its outcome. r describes the
// call. A call that cannot be recorded is not made. If only the outcome cannot be recorded, the
// call has taken effect, and the failure is logged.
func (a *auditing) Audited(ctx context.Context, r audit.Record, call func() (Change, error)) error {
	if a.log == nil {
		_, err := call()
		return err
	}
	r.Outcome = audit.OutcomeIntended
	if err := a.record(ctx, &r); err != nil {
		return err
	}
	done, err := call()
	r.Outcome, r.Reason = outcomeOf(err)
	if err != nil && done.Partly {
		r.Outcome = audit.OutcomeUnknown
	}
	if err == nil || done.Partly {
		r.Before, r.After, r.Index = done.Before, done.After, done.Index
	}
	if failed := a.write(context.WithoutCancel(ctx), r); failed != nil {
		a.logger.ErrorContext(ctx, "the outcome of a call is not in the audit log", "event", r.Event, "outcome", r.Outcome, "error", failed)
	}
	return err
}

func (a *auditing) record(ctx context.Context, r *audit.Record) error {
	who := a.auth.Caller(ctx)
	r.Principal, r.Address, r.Node = who.Principal, who.Address, a.tag()
	if err := a.write(ctx, *r); err != nil {
		return apierror.Unavailable(apierror.ReasonAuditFailed, "the node cannot record the call, so it is not made", apierror.RetryQuorum, err)
	}
	return nil
}

// write waits for recordTimeout at most: a disk that hangs holds up no call.
func (a *auditing) write(ctx context.Context, r audit.Record) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	return a.log.Write(ctx, r)
}

// A denied caller can ask as often as it likes: these are the records written a
// second, and at once.
const denialsPerSecond, denialsAtOnce = 1, 100

// RecordDenial records that the caller had no right to a call.
func (a *auditing) RecordDenial(ctx context.Context, call, message string) {
	if a.log == nil {
		return
	}
	if !a.denials.Allow() {
		a.denialsLeftOut.Add(1)
		return
	}
	r := audit.Record{
		Event: audit.EventDenied, Outcome: audit.OutcomeRefused, Reason: apierror.ReasonPermissionDenied,
		Call: call, After: message, LeftOut: a.denialsLeftOut.Swap(0),
	}
	if err := a.record(context.WithoutCancel(ctx), &r); err != nil {
		a.logger.ErrorContext(ctx, "a denied call is not in the audit log", "call", call, "error", err)
	}
}

// outcomeOf returns the outcome and reason that the record has for a call's error.
func outcomeOf(err error) (outcome, reason string) {
	if err == nil {
		return audit.OutcomeDone, ""
	}
	e := apierror.Of(err)
	if e.Code == apierror.CodeInternal || e.Reason == apierror.ReasonOutcomeUnknown {
		return audit.OutcomeUnknown, e.Reason
	}
	return audit.OutcomeRefused, e.Reason
}
