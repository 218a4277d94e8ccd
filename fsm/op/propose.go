package op

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// CodecError is the error of an operation that cannot be encoded, or of bytes that are no
// result.
type CodecError struct {
	what string
	err  error
}

// Error implements error.
func (e *CodecError) Error() string { return e.what + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *CodecError) Unwrap() error { return e.err }

// Propose takes the operation that does what the payload says through the log, with the
// method of a proposer, and returns its result. The error is the proposer's, a
// *RefusedError, or an *outcome.Error around a *CodecError: NotApplied if the operation
// cannot be encoded, Unknown if what came back is no result.
func (e Envelope) Propose(
	ctx context.Context, propose func(ctx context.Context, operation []byte) ([]byte, error), payload proto.Message,
) (*raftlogv1.Result, error) {
	answer, err := e.propose(ctx, propose, payload)
	if err != nil {
		return nil, err
	}
	return decodeAnswer(answer)
}

// propose takes the operation through the log, and returns the encoded result.
func (e Envelope) propose(
	ctx context.Context, propose func(ctx context.Context, operation []byte) ([]byte, error), payload proto.Message,
) ([]byte, error) {
	operation, err := e.Encode(payload)
	if err != nil {
		return nil, outcome.NewNotApplied(outcome.Invalid, &CodecError{"encode an operation", err})
	}
	return propose(ctx, operation)
}

// decodeAnswer is DecodeResult of what an operation was answered, which has happened.
func decodeAnswer(answer []byte) (*raftlogv1.Result, error) {
	result, err := DecodeResult(answer)
	if err != nil && RefusalOf(err) == nil {
		err = outcome.NewUnknown(outcome.Unspecified, err)
	}
	return result, err
}
