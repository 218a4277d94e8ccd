package service

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// propose takes op through the log, in the name of the caller where that counts,
// and returns its result. repeatable says that
// the same call again would be safe. The error is an *Error.
func (s *Service) propose(ctx context.Context, op *raftlogv1.Operation, repeatable bool) (*raftlogv1.Result, error) {
	if op.Principal == nil {
		op.Principal = s.principal(ctx, op.Request != nil)
	}
	result, err := proposeTo(ctx, s.cfg.Proposer, op)
	if unnamed(err, op.Principal) {
		op.Principal = s.author(ctx)
		result, err = proposeTo(ctx, s.cfg.Proposer, op)
	}
	if err != nil {
		return nil, proposalError(err, repeatable)
	}
	return result, nil
}

// refused is an operation that the state refused.
type refused struct {
	refusal *raftlogv1.Refusal
}

func (r *refused) Error() string {
	return fmt.Sprintf("refused: %s %s", r.refusal.GetReason(), r.refusal.GetDetail())
}

func (r *refused) Refused() *raftlogv1.Refusal { return r.refusal }

// proposeTo takes op through the log and returns its result. The error is the
// proposer's, a *refused, or an *Error for bytes that cannot be encoded or
// decoded.
func proposeTo(ctx context.Context, to Proposer, op *raftlogv1.Operation) (*raftlogv1.Result, error) {
	data, err := proto.Marshal(op)
	if err != nil {
		return nil, internal(fmt.Errorf("encode an operation: %w", err))
	}
	answer, err := to.Propose(ctx, data)
	if err != nil {
		return nil, err
	}
	return decodeResult(answer)
}

// proposeAll takes encoded operations through the log together and returns their
// answers. Those whose err is set already are left out; the errors it sets are the
// proposer's.
func (s *Service) proposeAll(ctx context.Context, operations [][]byte, errs []error) [][]byte {
	proposed, places := make([][]byte, 0, len(operations)), make([]int, 0, len(operations))
	for i, operation := range operations {
		if errs[i] == nil {
			proposed, places = append(proposed, operation), append(places, i)
		}
	}
	answers := make([][]byte, len(operations))
	results, failures := s.cfg.Proposer.ProposeAll(ctx, proposed)
	for n, i := range places {
		answers[i], errs[i] = results[n], failures[n]
	}
	return answers
}

// decodeResult returns the result in answer, or a *refused.
func decodeResult(answer []byte) (*raftlogv1.Result, error) {
	result := new(raftlogv1.Result)
	if err := proto.Unmarshal(answer, result); err != nil {
		return nil, internal(fmt.Errorf("decode a result: %w", err))
	}
	if refusal := result.GetRefusal(); refusal != nil {
		return nil, &refused{refusal: refusal}
	}
	return result, nil
}

// wrongResult is what a result of another operation's type leads to.
func wrongResult(want string, got *raftlogv1.Result) error {
	return internal(fmt.Errorf("the result of %s is a %T", want, got.GetResult()))
}

// value returns the plain value in a result.
func value(what string, result *raftlogv1.Result) (int64, error) {
	v, ok := result.GetResult().(*raftlogv1.Result_Value)
	if !ok {
		return 0, wrongResult(what, result)
	}
	return v.Value, nil
}
