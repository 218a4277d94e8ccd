package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// proposeAsCaller tries a proposal in the name of the caller where that counts, and again with the
// name where the state requires it. keyed means that there is a request id, and repeatable that the
// same call again would be safe. The error is an *apierror.Error.
func (b *base) proposeAsCaller(ctx context.Context, keyed, repeatable bool, try func(principal *string) error) error {
	principal := b.principal(ctx, keyed)
	err := try(principal)
	if needsPrincipal(err, principal) {
		err = try(b.author(ctx))
	}
	if err != nil {
		return proposalError(err, repeatable)
	}
	return nil
}

// principal returns the caller's name for an operation, or nil as long as there
// are no roles: operations then carry no unused name. A request id is always its
// caller's.
func (b *base) principal(ctx context.Context, keyed bool) *string {
	if b.state.Roles().Table.Set() || keyed {
		return b.author(ctx)
	}
	return nil
}

func (b *base) author(ctx context.Context) *string {
	who := b.Principal(ctx)
	return &who
}

// needsPrincipal reports whether an operation was refused only because it does not name its caller:
// roles were set after this node had looked for them. Nothing happened, so it is proposed again
// with the name.
func needsPrincipal(err error, principal *string) bool {
	return principal == nil && op.RefusalOf(err).GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED
}

// prepare checks the form of a request id, and refuses calls that allow refuses. It returns the
// envelope of the operation.
func (b *base) prepare(ctx context.Context, id *idnodev1.RequestId, need rights.Right, what admission.Target, ids int64,
	f func() fingerprint,
) (op.Envelope, error) {
	key, err := b.accept(id, 0, what.Database, f)
	if err != nil {
		return op.Envelope{}, err
	}
	if err := b.Allow(ctx, need, what, ids); err != nil {
		return op.Envelope{}, err
	}
	return op.Envelope{Database: what.Database, Request: key}, nil
}

// proposeAudited is propose for a change that is audited with r, and with the values that changed
// returns for its result.
func (b *base) proposeAudited(ctx context.Context, r audit.Record, e op.Envelope, payload proto.Message, repeatable bool,
	changed func(*raftlogv1.Result) (before, after any),
) (result *raftlogv1.Result, err error) {
	err = b.Audited(ctx, r, func() (done admission.Change, err error) {
		if result, err = b.propose(ctx, e, payload, repeatable); err == nil {
			done.Index = result.GetLogIndex()
			done.Before, done.After = changed(result)
		}
		return done, err
	})
	return result, err
}

// thenIs returns the changed function of proposeAudited for a change whose result has no further
// values.
func thenIs(after any) func(*raftlogv1.Result) (any, any) {
	return func(*raftlogv1.Result) (any, any) { return nil, after }
}

// propose takes the payload's operation through the log, in the name of the caller where that counts,
// and returns its result, or nil and an *apierror.Error. repeatable means that the same call again is safe
// without a request id too. See proposeAsCaller.
func (b *base) propose(ctx context.Context, e op.Envelope, payload proto.Message,
	repeatable bool,
) (result *raftlogv1.Result, err error) {
	err = b.proposeAsCaller(ctx, e.Request != nil, repeatable || e.Request != nil, func(principal *string) (err error) {
		e.Principal = cmp.Or(principal, e.Principal)
		result, err = b.once(ctx, e, payload)
		return err
	})
	return result, err
}

// once takes an operation through the log and returns its result. The error is the log's,
// an *op.RefusedError, or an *apierror.Error for bytes that cannot be encoded or decoded, or a result of
// another operation's type.
func (b *base) once(ctx context.Context, e op.Envelope, payload proto.Message) (*raftlogv1.Result, error) {
	result, err := e.Propose(ctx, b.proposer, payload)
	if err == nil && !isAnswerTo(payload, result) {
		return nil, wrongResult(payload, result)
	}
	return result, internalCodec(err)
}

// proposeAll takes encoded operations through the log in one proposal and returns their answers.
// Operations whose err is set are left out; the errors it sets are the proposer's.
func (b *base) proposeAll(ctx context.Context, operations [][]byte, errs []error) [][]byte {
	proposed, places := make([][]byte, 0, len(operations)), make([]int, 0, len(operations))
	for i, operation := range operations {
		if errs[i] == nil {
			proposed, places = append(proposed, operation), append(places, i)
		}
	}
	answers := make([][]byte, len(operations))
	results, failures := b.proposer.ProposeAll(ctx, proposed)
	for n, i := range places {
		answers[i], errs[i] = results[n], failures[n]
	}
	return answers
}

// internalCodec returns err, or an *apierror.Error in place of an operation that cannot be encoded
// or a result that cannot be decoded.
func internalCodec(err error) error {
	if codec, ok := errors.AsType[*op.CodecError](err); ok {
		return apierror.Internal(codec)
	}
	return err
}

// wrongResult is the error for a result of another operation's type.
func wrongResult(want any, got *raftlogv1.Result) error {
	return apierror.Internal(fmt.Errorf("the result of %T is a %T", want, got.GetResult()))
}

// isAnswerTo reports whether a result has the fields with which the operation of a payload is
// answered, beside the log index. Most operations have no such fields.
func isAnswerTo(payload proto.Message, result *raftlogv1.Result) bool {
	switch payload.(type) {
	case *raftlogv1.IdentitySeed, *raftlogv1.IdentityDelete, *raftlogv1.HiLoSet, *raftlogv1.SettingSet,
		*raftlogv1.SeriesDefine, *raftlogv1.SeriesCloseScope, *raftlogv1.SeriesImport:
		_, ok := result.GetResult().(*raftlogv1.Result_Value)
		return ok
	case *raftlogv1.HiLoNext:
		return result.GetHiloNext() != nil
	case *raftlogv1.HiLoReturn:
		return result.GetHiloReturn() != nil
	case *raftlogv1.Merge:
		return result.GetMerge() != nil
	case *raftlogv1.DatabaseDelete:
		return result.GetDatabaseDeleted() != nil
	case *raftlogv1.MergeCluster:
		return result.GetMergeCluster() != nil
	case *raftlogv1.PoolDefine:
		return result.GetPoolDefined() != nil
	case *raftlogv1.WorkerAcquire, *raftlogv1.WorkerRenew, *raftlogv1.WorkerEvict:
		return result.GetWorkerLease() != nil
	case *raftlogv1.SeriesTake, *raftlogv1.SeriesEnd, *raftlogv1.SeriesReconcile:
		return result.GetSeriesNumbers() != nil
	case *raftlogv1.RolesSet:
		_, ok := result.GetResult().(*raftlogv1.Result_RolesBefore)
		return ok
	}
	return result.GetResult() == nil
}
