package service

import (
	"errors"
	"strings"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// badForm translates docid's error about a name, tag, id, separator or database. field is the
// request's field, where that differs from docid's word for it; empty keeps docid's.
func badForm(err error, field string) *Error {
	bad, ok := errors.AsType[*docid.Error](err)
	if !ok {
		return internal(err)
	}
	if field == "" {
		field = bad.Field
	}
	return &Error{Code: InvalidArgument, Reason: bad.Reason, Field: field, Message: field + " " + bad.Detail, Err: err}
}

// BadForm translates docid's error about a part of a request.
func BadForm(err error) *Error { return badForm(err, "") }

// proposalError translates the error of a proposal without a result. repeatable means that the same
// call again is safe although the first may have been applied: it has a request id, or asks for a
// HiLo range, where the worst result is a gap.
func proposalError(err error, repeatable bool) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if refusal := op.RefusalOf(err); refusal != nil {
		return refusalError(refusal)
	}
	if outcome.Of(err) == outcome.NotApplied {
		return notApplied(err)
	}
	e := &Error{
		Code: Aborted, Reason: ReasonOutcomeUnknown, Err: err,
		Message: "the call may or may not have taken effect; without a request id only the caller can find out",
	}
	if repeatable {
		e.Code, e.RetryAfter = Unavailable, retryBusy
		e.Message = "the call may or may not have taken effect; the same call again is safe"
	}
	return e
}

func notApplied(err error) *Error {
	switch outcome.ReasonOf(err) {
	case outcome.Overloaded:
		return exhausted(ReasonOverloaded, "too many calls are waiting at this node", retryBusy, err)
	case outcome.TooLarge:
		return exhausted(ReasonQuota, "the request is too large for the log", 0, err)
	case outcome.StorageFull:
		return exhausted(ReasonStorageFull, "the disk is nearly full", 0, err)
	case outcome.Starting:
		return unavailable(ReasonStarting, "the node is starting", retryStarting, err)
	case outcome.Stopping:
		return stopping(err)
	case outcome.LeaderUnreachable:
		return unavailable(ReasonLeaderUnreachable, causeOf(err)+"; nothing happened", retryQuorum, err)
	case outcome.Deadline:
		return unavailable(ReasonNoQuorum, "no leader took the call in time; nothing happened", retryQuorum, err)
	default:
		return unavailable(ReasonNoQuorum, "there is no leader, or no majority that follows it; nothing happened", retryQuorum, err)
	}
}

// causeOf is the cause in an error of package outcome, which names the leader.
func causeOf(err error) string {
	if e, ok := errors.AsType[*outcome.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return "the leader does not answer this node"
}

// readError translates why a linearizable read failed. A read changes nothing,
// so an unknown outcome is no outcome.
func readError(err error) *Error {
	if reason := outcome.ReasonOf(err); outcome.Of(err) == outcome.Unknown && reason != outcome.Deadline {
		return unavailable(ReasonNoQuorum, "no majority confirmed the read", retryQuorum, err)
	}
	return notApplied(err)
}

func etagError(err error) *Error {
	var starting etag.StartingError
	switch {
	case errors.As(err, &starting):
		return unavailable(ReasonStarting, starting.Error(), retryStarting, nil)
	case errors.Is(err, etag.ErrExhausted):
		return &Error{Code: OutOfRange, Reason: ReasonCounterExhausted, Message: "the server-side etags of this database are used up", Err: err}
	case errors.Is(err, etag.ErrTooManyDatabases):
		return exhausted(ReasonQuota, "this node keeps etags for no more databases; see the setting max-databases", 0, err)
	case errors.Is(err, etag.ErrStalled):
		return unavailable(ReasonOverloaded, "the disk did not answer in time; nothing was issued", retryQuorum, err)
	case errors.Is(err, etag.ErrClosed):
		return stopping(err)
	case errors.Is(err, etag.ErrBroken), errors.Is(err, etag.ErrCorrupt):
		return &Error{Code: DataLoss, Reason: ReasonCorrupt, Message: "the node's own counters are damaged", Err: err}
	default:
		return internal(err)
	}
}

type refusalKind struct {
	code   Code
	reason string
}

var refusalKinds = map[raftlogv1.RefusalReason]refusalKind{
	raftlogv1.RefusalReason_REFUSAL_REASON_INVALID:            {InvalidArgument, ReasonInvalidRequest},
	raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA:              {ResourceExhausted, ReasonQuota},
	raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED:  {OutOfRange, ReasonCounterExhausted},
	raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY:        {Aborted, ReasonConcurrency},
	raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED:         {AlreadyExists, ReasonIDClaimed},
	raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED:  {AlreadyExists, ReasonRequestIDReused},
	raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED: {FailedPrecondition, ReasonRequestIDExpired},
	raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN:          {FailedPrecondition, ReasonTagTaken},
	raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID:        {InvalidArgument, ReasonInvalidNodeTag},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER:       {FailedPrecondition, ReasonTagNotMember},
	raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND: {NotFound, ReasonIdentityNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_CLAIM_NOT_FOUND:    {NotFound, ReasonClaimNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND:   {NotFound, ReasonMemberNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SETTING_INVALID:    {InvalidArgument, ReasonInvalidSetting},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED:         {FailedPrecondition, ReasonNotFormed},
	raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER:         {FailedPrecondition, ReasonLastVoter},
	raftlogv1.RefusalReason_REFUSAL_REASON_LAST_MAX_INVALID:   {InvalidArgument, ReasonInvalidLastMax},
	raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED: {FailedPrecondition, ReasonFormatUnsupported},
	raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED:  {PermissionDenied, ReasonPermissionDenied},
	raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID:      {InvalidArgument, ReasonInvalidRoles},
	raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK:           {DataLoss, ReasonCorrupt},
	raftlogv1.RefusalReason_REFUSAL_REASON_LOSES_QUORUM:       {FailedPrecondition, ReasonLosesQuorum},
	raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE: {FailedPrecondition, ReasonMemberUnreachable},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_TRANSFERRED:    {FailedPrecondition, ReasonNotTransferred},

	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID:         {InvalidArgument, ReasonInvalidSeries},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NOT_FOUND:       {NotFound, ReasonSeriesNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED:       {FailedPrecondition, ReasonSeriesSuspended},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT:    {AlreadyExists, ReasonKeyConflict},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_NOT_FOUND:   {NotFound, ReasonNumberNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND: {NotFound, ReasonScopeNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED:    {FailedPrecondition, ReasonScopeClosed},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK:       {FailedPrecondition, ReasonDateGoesBack},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN:   {FailedPrecondition, ReasonTooManyOpen},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL:            {OutOfRange, ReasonSeriesFull},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_EXPIRED:         {FailedPrecondition, ReasonReservationExpired},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NUMBER_STATE:    {FailedPrecondition, ReasonNumberState},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE:          {FailedPrecondition, ReasonSeriesInUse},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS:         {FailedPrecondition, ReasonSeriesDiffers},

	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_NOT_FOUND: {NotFound, ReasonPoolNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_DIFFERS:   {FailedPrecondition, ReasonPoolDiffers},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL:      {ResourceExhausted, ReasonPoolFull},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_ENDED:     {OutOfRange, ReasonPoolEnded},
	raftlogv1.RefusalReason_REFUSAL_REASON_LEASE_PASSED:   {FailedPrecondition, ReasonLeasePassed},
	raftlogv1.RefusalReason_REFUSAL_REASON_CLOCK_SKEW:     {FailedPrecondition, ReasonClockSkew},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_INVALID:   {InvalidArgument, ReasonInvalidPool},
}

// reasonOfField is the reason for a text that the state refuses, by its field.
var reasonOfField = map[string]string{
	"name": ReasonInvalidName, "tag": ReasonInvalidTag, "id": ReasonInvalidID,
	"database": ReasonInvalidDatabase,
}

// refusalError translates a refusal of the state machine.
func refusalError(r *raftlogv1.Refusal) *Error {
	kind, ok := refusalKinds[r.GetReason()]
	if !ok {
		return internal(errors.New("refused: " + r.String()))
	}
	e := &Error{Code: kind.code, Reason: kind.reason, Message: r.GetDetail(), Field: r.GetField()}
	if strings.HasPrefix(e.Message, "is ") || strings.HasPrefix(e.Message, "has ") {
		// The end of a sentence that begins with the field.
		e.Message = e.Field + " " + e.Message
	}
	if e.Message == "" {
		e.Message = "refused by the cluster"
	}
	if r.GetSeriesNumber() != nil {
		e.Number = numberMessage(r.GetSeriesNumber())
	}
	if reason, ok := reasonOfField[e.Field]; ok && e.Reason == ReasonInvalidRequest {
		e.Reason = reason
	}
	return e
}
