// Package apierror is the error of a call: code, reason and text, the same for every API.
//
// A use case returns it, and each API writes it in its own form. Only reasons are for programs to compare.
package apierror

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/budget"
)

// Code is the kind of an error, which decides what a caller can do about it. It is gRPC's.
type Code = codes.Code

// The codes.
const (
	// CodeInternal is a bug in the server. The cause is logged, not returned.
	CodeInternal = codes.Internal
	// CodeInvalidArgument means the request is wrong in itself.
	CodeInvalidArgument = codes.InvalidArgument
	// CodeUnavailable means the same call again, here or elsewhere, is safe.
	CodeUnavailable = codes.Unavailable
	// CodeAborted means the caller must look before it tries again.
	CodeAborted = codes.Aborted
	// CodeResourceExhausted means a bound is reached; nothing happened.
	CodeResourceExhausted = codes.ResourceExhausted
	// CodeOutOfRange means a counter has no numbers left; nothing happened.
	CodeOutOfRange = codes.OutOfRange
	// CodeAlreadyExists means the id, or the request id, is taken.
	CodeAlreadyExists = codes.AlreadyExists
	// CodeFailedPrecondition means the cluster is not in a state for the call.
	CodeFailedPrecondition = codes.FailedPrecondition
	// CodeNotFound means that the named object does not exist.
	CodeNotFound = codes.NotFound
	// CodeDataLoss means the node's own data is damaged; it is about to end.
	CodeDataLoss = codes.DataLoss
	// CodePermissionDenied means the caller has no right to it; nothing happened.
	CodePermissionDenied = codes.PermissionDenied
	// CodeUnauthenticated means the caller must connect anew, with another certificate; nothing happened.
	CodeUnauthenticated = codes.Unauthenticated
)

// Error is the error of every use case.
type Error struct {
	Code Code
	// Reason is one of the Reason constants.
	Reason string
	// Message is for the caller's eyes: no secrets, nothing internal.
	Message string
	// Field is the field of the request that is at fault, in the words of the
	// public API; empty if none is.
	Field string
	// RetryAfter is the wait before a retry of the call; 0 if a retry is useless or
	// unsafe.
	RetryAfter time.Duration
	// Number is the number that the key already has, if the key asked for another number of its
	// series; nil for every other error.
	Number *idnodev1.SeriesNumber
	// Err is the cause, for the log only; may be nil.
	Err error
}

// Error implements error. The cause is left out: it is not for callers.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s: %s", e.Reason, e.Field, e.Message)
	}
	return e.Reason + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// RetryQuorum, RetryStarting and RetryBusy are the times that callers are asked to wait. An election takes some hundred
// milliseconds, so asking again much earlier only adds load.
const (
	RetryQuorum   = 250 * time.Millisecond
	RetryStarting = 500 * time.Millisecond
	RetryBusy     = 100 * time.Millisecond
)

// Invalid refuses a request that is wrong in itself, in a field.
func Invalid(reason, field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalidArgument, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Unavailable refuses a call that may be made again, after a time, here or elsewhere.
func Unavailable(reason, message string, after time.Duration, cause error) *Error {
	return &Error{Code: CodeUnavailable, Reason: reason, Message: message, RetryAfter: after, Err: cause}
}

// Exhausted refuses a call that is beyond a bound; after is 0 if a retry is useless.
func Exhausted(reason, message string, after time.Duration, cause error) *Error {
	return &Error{Code: CodeResourceExhausted, Reason: reason, Message: message, RetryAfter: after, Err: cause}
}

// Stopping refuses calls of a node that is stopping.
func Stopping(cause error) *Error {
	return Unavailable(ReasonStopping, "the node is stopping", RetryBusy, cause)
}

// Behind refuses calls that need a node which has caught up with the cluster since its start.
func Behind() *Error {
	return Unavailable(ReasonStarting, "the node has not caught up with the cluster since its start", RetryStarting, nil)
}

// Forbidden refuses a call for which the caller lacks a right.
func Forbidden(format string, args ...any) *Error {
	return &Error{Code: CodePermissionDenied, Reason: ReasonPermissionDenied, Message: fmt.Sprintf(format, args...)}
}

// ErrOverloaded refuses a call for which the caller's share of the memory has no room.
var ErrOverloaded = Exhausted(
	ReasonOverloaded, "too many calls are in flight, or too many answers unread, of this caller or at this node", RetryBusy, nil,
)

// ErrConnections refuses a caller's connection.
var ErrConnections = Exhausted(ReasonOverloaded, budget.ErrTooMany.Error(), RetryBusy, nil)

// CertificateEnded refuses a call on a connection whose certificate is no longer accepted.
func CertificateEnded(cert *x509.Certificate) *Error {
	return &Error{Code: CodeUnauthenticated, Reason: ReasonCertificateEnded, Message: fmt.Sprintf(
		"the certificate %s of this connection, valid until %s, has expired, or its CA is no longer trusted: reconnect with a valid one",
		cert.Subject, cert.NotAfter.UTC().Format(time.RFC3339))}
}

// Of returns err as an *Error. Any other error becomes INTERNAL, without its text.
func Of(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return Internal(err)
}

// Internal hides cause from the caller.
func Internal(cause error) *Error {
	return &Error{Code: CodeInternal, Reason: ReasonInternal, Message: "internal error; the node's log has the cause", Err: cause}
}
