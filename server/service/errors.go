package service

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
	// Internal is a bug in the server. The cause is logged, not returned.
	Internal = codes.Internal
	// InvalidArgument means the request is wrong in itself.
	InvalidArgument = codes.InvalidArgument
	// Unavailable means the same call again, here or elsewhere, is safe.
	Unavailable = codes.Unavailable
	// Aborted means the caller must look before it tries again.
	Aborted = codes.Aborted
	// ResourceExhausted means a bound is reached; nothing happened.
	ResourceExhausted = codes.ResourceExhausted
	// OutOfRange means a counter has no numbers left; nothing happened.
	OutOfRange = codes.OutOfRange
	// AlreadyExists means the id, or the request id, is taken.
	AlreadyExists = codes.AlreadyExists
	// FailedPrecondition means the cluster is not in a state for the call.
	FailedPrecondition = codes.FailedPrecondition
	// NotFound means that the named object does not exist.
	NotFound = codes.NotFound
	// DataLoss means the node's own data is damaged; it is about to end.
	DataLoss = codes.DataLoss
	// PermissionDenied means the caller has no right to it; nothing happened.
	PermissionDenied = codes.PermissionDenied
	// Unauthenticated means the caller must connect anew, with another certificate; nothing happened.
	Unauthenticated = codes.Unauthenticated
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

// How long callers are asked to wait. An election takes some hundred
// milliseconds, so asking again much earlier only adds load.
const (
	retryQuorum   = 250 * time.Millisecond
	retryStarting = 500 * time.Millisecond
	retryBusy     = 100 * time.Millisecond
)

func invalid(reason, field, format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

func unavailable(reason, message string, after time.Duration, cause error) *Error {
	return &Error{Code: Unavailable, Reason: reason, Message: message, RetryAfter: after, Err: cause}
}

func exhausted(reason, message string, after time.Duration, cause error) *Error {
	return &Error{Code: ResourceExhausted, Reason: reason, Message: message, RetryAfter: after, Err: cause}
}

func stopping(cause error) *Error {
	return unavailable(ReasonStopping, "the node is stopping", retryBusy, cause)
}

// behind refuses calls that need a node which has caught up with the cluster since its start.
func behind() *Error {
	return unavailable(ReasonStarting, "the node has not caught up with the cluster since its start", retryStarting, nil)
}

func forbidden(format string, args ...any) *Error {
	return &Error{Code: PermissionDenied, Reason: ReasonPermissionDenied, Message: fmt.Sprintf(format, args...)}
}

// ErrOverloaded refuses a call for which the caller's share of the memory has no room.
var ErrOverloaded = exhausted(
	ReasonOverloaded, "too many calls are in flight, or too many answers unread, of this caller or at this node", retryBusy, nil,
)

// ErrConnections refuses a caller's connection.
var ErrConnections = exhausted(ReasonOverloaded, budget.ErrTooMany.Error(), retryBusy, nil)

// CertificateEnded refuses a call on a connection whose certificate is no longer accepted.
func CertificateEnded(cert *x509.Certificate) *Error {
	return &Error{Code: Unauthenticated, Reason: ReasonCertificateEnded, Message: fmt.Sprintf(
		"the certificate %s of this connection, valid until %s, has expired, or its CA is no longer trusted: reconnect with a valid one",
		cert.Subject, cert.NotAfter.UTC().Format(time.RFC3339))}
}

// ErrorOf returns err as an *Error. Any other error becomes INTERNAL, without its text.
func ErrorOf(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return internal(err)
}

// internal hides cause from the caller.
func internal(cause error) *Error {
	return &Error{Code: Internal, Reason: ReasonInternal, Message: "internal error; the node's log has the cause", Err: cause}
}
