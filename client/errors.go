package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/generator"
)

// Reasons that this package sets itself, or acts on in several places.
const (
	reasonNoEndpoint = "NO_ENDPOINT"
	reasonClosed     = "CLIENT_CLOSED"
	reasonUnknown    = "OUTCOME_UNKNOWN"
	reasonOverloaded = "OVERLOADED"
	reasonExpired    = "REQUEST_ID_EXPIRED"
	// The node ends the connection; the next one shows the certificate of today.
	reasonCertificateEnded = "CERTIFICATE_ENDED"
	reasonNotFormed        = "NOT_FORMED"
	reasonCanceled         = "CANCELED"
	reasonDeadline         = "DEADLINE_EXCEEDED"
	reasonOtherCluster     = "OTHER_CLUSTER"
	reasonStarting         = "STARTING"
)

// kind is the type of the Err… values: a reason of the API, or a code.
type kind struct {
	reason string
	code   codes.Code
	text   string
}

func (k *kind) Error() string { return k.text }

// The errors of calls, for errors.Is.
var (
	// ErrNoQuorum: the cluster has no leader, or no majority, or the leader does not answer the node
	// (the reason LEADER_UNREACHABLE). Nothing happened.
	ErrNoQuorum error = &kind{reason: "NO_QUORUM", text: "the cluster has no quorum"}
	// ErrNoEndpoint: no node could be reached. Nothing happened. It is not the error of a call
	// whose context ended before it was sent: errors.Is with context.Canceled, or ErrDeadline,
	// finds that.
	ErrNoEndpoint error = &kind{reason: reasonNoEndpoint, text: "no node can be reached"}
	// ErrDeadline: the time of the call ended, by its context or Config.Timeout, before an answer
	// came. Nothing happened, unless the error is ErrOutcomeUnknown too.
	ErrDeadline error = &kind{code: codes.DeadlineExceeded, text: "the time is over"}
	// ErrOtherCluster: the nodes that answer belong to another cluster than the client, or the
	// endpoints are of two. Nothing happened in its own, unless the error is ErrOutcomeUnknown too.
	ErrOtherCluster error = &kind{reason: reasonOtherCluster, text: "the node belongs to another cluster"}
	// ErrOutcomeUnknown: the call may or may not have happened. The same call with WithRetryOf and
	// Error.RequestID counts once; a call about a series' numbers needs no request id.
	ErrOutcomeUnknown error = &kind{reason: reasonUnknown, text: "the outcome is unknown"}
	// ErrOverloaded: there are too many calls. Nothing happened.
	ErrOverloaded error = &kind{reason: reasonOverloaded, text: "the node is overloaded"}
	// ErrStorageFull: a disk of the cluster is nearly full. Nothing happened.
	ErrStorageFull error = &kind{reason: "STORAGE_FULL", text: "the disk is nearly full"}
	// ErrQuota: a limit on names, claims or sizes is reached. Nothing happened.
	ErrQuota error = &kind{reason: "QUOTA", text: "a limit is reached"}
	// ErrRateLimited: the caller has reached a limit of its own. Nothing happened.
	ErrRateLimited error = &kind{reason: "RATE_LIMITED", text: "the caller's limit is reached"}
	// ErrExhausted: the counter has no numbers left.
	ErrExhausted error = &kind{reason: "COUNTER_EXHAUSTED", text: "the counter is exhausted"}
	// ErrConcurrency: an expected value is not the current one.
	ErrConcurrency error = &kind{reason: "CONCURRENCY", text: "the expected value is not the current one"}
	// ErrIDClaimed: the id is claimed, or was issued by an identity.
	ErrIDClaimed error = &kind{reason: "ID_CLAIMED", text: "the id is taken"}
	// ErrRequestIDReused: the request id was used for another request.
	ErrRequestIDReused error = &kind{reason: "REQUEST_ID_REUSED", text: "the request id was used for another request"}
	// ErrRequestIDExpired: the cluster no longer knows whether the first try of the call
	// happened.
	ErrRequestIDExpired error = &kind{reason: reasonExpired, text: "the request id is too old"}
	// ErrPermissionDenied: the caller's certificate has no right to it. Nothing
	// happened.
	ErrPermissionDenied error = &kind{reason: "PERMISSION_DENIED", text: "the caller lacks the right"}
	// ErrKeyConflict: a key has a number of another scope or date.
	ErrKeyConflict error = &kind{reason: "KEY_CONFLICT", text: "the key has another number"}
	// ErrSeriesSuspended: the series gives no numbers until an operator resumes it.
	ErrSeriesSuspended error = &kind{reason: "SERIES_SUSPENDED", text: "the series is suspended"}
	// ErrReservationExpired: the time of the key's number ended, and another key has it.
	ErrReservationExpired error = &kind{reason: "RESERVATION_EXPIRED", text: "the reservation has expired"}
	// ErrNotFound: there is no such identity, counter, claim, series or number.
	ErrNotFound error = &kind{code: codes.NotFound, text: "not found"}
	// ErrInvalid: the request is wrong; Error.Field says where, Error.Reason why.
	ErrInvalid error = &kind{code: codes.InvalidArgument, text: "the request is wrong"}
	// ErrClosed: the Client, or the handle, was closed.
	ErrClosed = generator.ErrClosed
)

// Error is the error of a failed call.
type Error struct {
	// Code is the gRPC status code.
	Code codes.Code
	// Reason is the API's name of the cause, for example "ID_CLAIMED"; empty for errors that
	// are not idnode's.
	Reason string
	// Field is the request's invalid field; may be empty.
	Field string
	// Message is the error's text.
	Message string
	// OutcomeUnknown means that a try of the call may have taken effect.
	OutcomeUnknown bool
	// RequestID names the call; zero if it has no request id. The same call with WithRetryOf and
	// it counts once.
	RequestID RequestID
	// RetryAfter is how long the node asks to wait before a repetition, as with ErrOverloaded and
	// ErrRateLimited; 0 if it does not.
	RetryAfter time.Duration

	// foreign means that the peer is no node of the client's cluster.
	foreign bool
	err     error
}

// Error implements error.
func (e *Error) Error() string {
	text := "idnode: " + cmp.Or(e.Reason, e.Code.String()) + ": " + e.Message
	if e.Field != "" {
		text += " (field " + e.Field + ")"
	}
	if e.OutcomeUnknown && e.Reason != reasonUnknown {
		text += "; whether an earlier try took effect is not known"
	}
	return text
}

// Unwrap returns the cause: a gRPC status, or a context's error.
func (e *Error) Unwrap() error { return e.err }

// Is makes errors.Is work with the Err… values of this package.
func (e *Error) Is(target error) bool {
	k, ok := target.(*kind)
	switch {
	case !ok:
		return false
	case k.reason == reasonUnknown:
		return e.OutcomeUnknown || e.Reason == reasonUnknown
	case k.reason != "":
		return e.Reason == k.reason || k == ErrNoQuorum && e.Reason == "LEADER_UNREACHABLE"
	default:
		return e.Code == k.code
	}
}

// errorOf returns a node's or gRPC's error as an *Error.
func errorOf(err error) *Error {
	if have, ok := errors.AsType[*Error](err); ok {
		return have
	}
	s := status.Convert(err)
	e := &Error{Code: s.Code(), Message: s.Message(), err: err}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "idnode" {
				e.Reason = d.GetReason()
				e.foreign = e.Reason == reasonOtherCluster
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				e.Field = v.GetField()
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	return e
}

// invalid returns an error of docid as the error that a node would return.
func invalid(err error) error {
	if bad, ok := errors.AsType[*docid.Error](err); ok {
		return invalidField(bad.Reason, bad.Field, bad.Error())
	}
	return err
}

func invalidField(reason, field, message string) *Error {
	return &Error{Code: codes.InvalidArgument, Reason: reason, Field: field, Message: message}
}

// unreachable returns the error of a failed connection: nothing was sent.
func unreachable(address string, cause error) *Error {
	e := &Error{Code: codes.Unavailable, Reason: reasonNoEndpoint, Message: fmt.Sprintf("cannot reach %s: %v", address, cause), err: cause}
	if wrongDoor(cause) {
		e.foreign = true
		e.Message = fmt.Sprintf("%s does not speak idnode's gRPC API: is it the address of --grpc (7400)? %v", address, cause)
	}
	return e
}

func closedError(text string) *Error {
	return &Error{Code: codes.Canceled, Reason: reasonClosed, Message: text, err: ErrClosed}
}

// gaveUp returns the error of a call whose context ended before the call was sent.
func gaveUp(ctx context.Context) error {
	return (&tries{}).fail(ctx, unreachable("the cluster", ctx.Err()))
}

// malformed returns the error of an answer that no node of this version gives.
func malformed(text string) *Error { return &Error{Code: codes.Internal, Message: text} }

// configError returns the error of a Config as an *Error.
func configError(err error) *Error {
	if have, ok := err.(*Error); ok { // Not in another error, whose text names the field.
		return have
	}
	return &Error{Code: codes.InvalidArgument, Reason: "INVALID_CONFIG", Message: err.Error(), err: err}
}

// effect is the possible effect of a failed try.
type effect uint8

const (
	// effectNone: certainly nothing happened, and another node may succeed.
	effectNone effect = iota
	// effectUnknown: the call may have happened.
	effectUnknown
	// effectRefused: the cluster decided against the call, and would do so again.
	effectRefused
)

// effect classifies a failed try. An error without a reason of idnode comes from gRPC and
// leaves the outcome unknown, except UNIMPLEMENTED, which comes from a server that is no
// idnode, and errors of a request that was never sent.
func (e *Error) effect() effect {
	switch e.Reason {
	case reasonUnknown:
		return effectUnknown
	case reasonOverloaded, reasonNotFormed, reasonOtherCluster, reasonCanceled, reasonDeadline, reasonCertificateEnded,
		"NODE_TAG_NOT_ASSIGNED", "NOT_A_MEMBER", "CORRUPT":
		return effectNone
	case "":
		return e.foreignEffect()
	}
	switch e.Code {
	case codes.Unavailable:
		return effectNone
	case codes.Internal:
		return effectUnknown
	default:
		return effectRefused
	}
}

// decided reports whether the cluster's state refused the call, not a node before.
func (e *Error) decided() bool {
	before := e.Reason == "" || e.Reason == reasonClosed || e.Code == codes.ResourceExhausted || e.Code == codes.PermissionDenied
	return !before && e.effect() == effectRefused
}

func (e *Error) foreignEffect() effect {
	switch e.Code {
	case codes.Unimplemented:
		return effectNone
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return effectRefused
	default:
		return effectUnknown
	}
}

// noise are gRPC's messages about bytes that are not HTTP/2, or not TLS. gRPC has no type for
// them: if a later version changes them, calls fail when their time is over.
var noise = []string{
	"looked like an HTTP/1.1 header",
	"first record does not look like a TLS handshake",
	"tls: no application protocol",
}

// wrongDoor reports whether a connection failed because the port is not a node's gRPC port,
// for example its HTTP port.
func wrongDoor(cause error) bool {
	s, ok := status.FromError(cause)
	if !ok || s.Code() == codes.Unimplemented {
		return ok
	}
	return slices.ContainsFunc(noise, func(text string) bool { return strings.Contains(s.Message(), text) })
}
