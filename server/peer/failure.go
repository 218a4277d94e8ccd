package peer

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/internal/dialcause"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// CallError is a failed call to another node.
type CallError struct {
	Code codes.Code
	// Message is the text of the other node, or of gRPC.
	Message string
	// Outcome is the outcome of a proposal; Unknown if the other node gave none.
	Outcome *outcome.Error
	refusal *raftlogv1.Refusal
}

func (e *CallError) Error() string {
	if e.Code == codes.DeadlineExceeded {
		return "no answer in time"
	}
	return dialcause.Short(e.Message)
}

// Unwrap returns the *outcome.Error.
func (e *CallError) Unwrap() error { return e.Outcome }

// Denied reports whether the other node does not let the caller in.
func (e *CallError) Denied() bool { return e.Code == codes.PermissionDenied }

// Refused returns why the replicated state refused a change; nil if it did not.
func (e *CallError) Refused() *raftlogv1.Refusal { return e.refusal }

func fail(code codes.Code, message string, failure *peerv1.Failure) error {
	s, err := status.New(code, message).WithDetails(failure)
	if err != nil {
		return status.Error(code, message)
	}
	return s.Err()
}

// encode returns an error of the node as a gRPC status.
func encode(err error) error {
	var refused interface{ Refused() *raftlogv1.Refusal }
	var known *outcome.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Refused() != nil:
		return fail(codes.FailedPrecondition, err.Error(), &peerv1.Failure{Refusal: refused.Refused()})
	case errors.As(err, &known):
		code := codes.Aborted // No caller retries a proposal that may have been applied.
		if known.Outcome == outcome.NotApplied {
			code = codes.Unavailable
		}
		return fail(code, err.Error(), &peerv1.Failure{Outcome: uint32(known.Outcome), Reason: uint32(known.Reason)})
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// decode returns a gRPC status as the error that was encoded: its code, outcome and refusal.
func decode(err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	e := &CallError{Code: s.Code(), Message: s.Message(), Outcome: outcome.NewUnknown(reasonOf(s.Code()), nil)}
	for _, detail := range s.Details() {
		f, ok := detail.(*peerv1.Failure)
		if !ok {
			continue
		}
		switch outcome.Outcome(f.GetOutcome()) {
		case outcome.NotApplied:
			e.Outcome = outcome.NewNotApplied(outcome.Reason(f.GetReason()), errors.New(e.Message))
		case outcome.Unknown:
			e.Outcome = outcome.NewUnknown(outcome.Reason(f.GetReason()), errors.New(e.Message))
		}
		if e.refusal = f.GetRefusal(); e.refusal != nil {
			e.Outcome = outcome.NewNotApplied(outcome.Invalid, nil)
		}
	}
	return e
}

func reasonOf(code codes.Code) outcome.Reason {
	if code == codes.DeadlineExceeded || code == codes.Canceled {
		return outcome.Deadline
	}
	return outcome.Unspecified
}
