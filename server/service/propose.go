package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// proposer takes operations through the log, in the names of their callers.
type proposer struct {
	log  Proposer
	auth *authorizer
	// applied is how far the state has applied the log.
	applied func() uint64
	// caughtUp is Config.CaughtUp.
	caughtUp func() bool
}

// named tries a proposal in the name of the caller where that counts, and again with the
// name where the state says that it must be there. keyed says that there is a request id,
// and repeatable that the same call again would be safe. The error is an *Error.
func (p *proposer) named(ctx context.Context, keyed, repeatable bool, try func(principal *string) error) error {
	principal := p.auth.principal(ctx, keyed)
	err := try(principal)
	if needsPrincipal(err, principal) {
		err = try(p.auth.author(ctx))
	}
	if err != nil {
		return proposalError(err, repeatable)
	}
	return nil
}

// needsPrincipal says that an operation was refused only because it does not name its
// caller: roles came to be after this node had looked for them. Nothing happened, so it
// is proposed again with the name.
func needsPrincipal(err error, principal *string) bool {
	return principal == nil && op.RefusalOf(err).GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED
}

// propose takes the operation that does what the payload says through the log, in the
// name of the caller where that counts, and returns its result, or nil and an *Error.
// See named.
func (p *proposer) propose(ctx context.Context, e op.Envelope, payload proto.Message,
	repeatable bool,
) (result *raftlogv1.Result, err error) {
	err = p.named(ctx, e.Request != nil, repeatable, func(principal *string) (err error) {
		e.Principal = cmp.Or(principal, e.Principal)
		result, err = p.once(ctx, e, payload)
		return err
	})
	return result, err
}

// once takes an operation through the log and returns its result. The error is the log's,
// an *op.RefusedError, or an *Error for bytes that cannot be encoded or decoded.
func (p *proposer) once(ctx context.Context, e op.Envelope, payload proto.Message) (*raftlogv1.Result, error) {
	answer, err := p.answer(ctx, e, payload)
	if err != nil {
		return nil, err
	}
	result, err := op.DecodeResult(answer)
	return result, internalCodec(err)
}

// answer takes an operation through the log and returns its encoded result.
func (p *proposer) answer(ctx context.Context, e op.Envelope, payload proto.Message) ([]byte, error) {
	operation, err := e.Encode(payload)
	if err != nil {
		return nil, internalCodec(err)
	}
	return p.log.Propose(ctx, operation)
}

// proposeAll takes encoded operations through the log in one proposal and returns their answers.
// Operations whose err is set are left out; the errors it sets are the proposer's.
func (p *proposer) proposeAll(ctx context.Context, operations [][]byte, errs []error) [][]byte {
	proposed, places := make([][]byte, 0, len(operations)), make([]int, 0, len(operations))
	for i, operation := range operations {
		if errs[i] == nil {
			proposed, places = append(proposed, operation), append(places, i)
		}
	}
	answers := make([][]byte, len(operations))
	results, failures := p.log.ProposeAll(ctx, proposed)
	for n, i := range places {
		answers[i], errs[i] = results[n], failures[n]
	}
	return answers
}

// internalCodec returns err, or an *Error in place of an operation that cannot be encoded
// or a result that cannot be decoded.
func internalCodec(err error) error {
	var codec *op.CodecError
	if errors.As(err, &codec) {
		return internal(codec)
	}
	return err
}

// wrongResult is what a result of another operation's type leads to.
func wrongResult(want string, got *raftlogv1.Result) error {
	return internal(fmt.Errorf("the result of %s is a %T", want, got.GetResult()))
}

// Value is the value of a counter at its change.
type Value struct {
	Value    int64
	LogIndex uint64
}

// value returns the plain value in a result, unless there is an error instead.
func value(what string, result *raftlogv1.Result, err error) (Value, error) {
	if err != nil {
		return Value{}, err
	}
	v, ok := result.GetResult().(*raftlogv1.Result_Value)
	if !ok {
		return Value{}, wrongResult(what, result)
	}
	return Value{Value: v.Value, LogIndex: result.GetLogIndex()}, nil
}
