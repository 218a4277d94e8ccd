package service

import (
	"errors"
	"strings"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
)

// badForm translates docid's error about a name, tag, id, separator or database. field is the
// request's field, where that differs from docid's word for it; empty keeps docid's.
func badForm(err error, field string) *apierror.Error {
	bad, ok := errors.AsType[*docid.Error](err)
	if !ok {
		return apierror.Internal(err)
	}
	if field == "" {
		field = bad.Field
	}
	return &apierror.Error{Code: apierror.CodeInvalidArgument, Reason: bad.Reason, Field: field, Message: field + " " + bad.Detail, Err: err}
}

// BadForm translates docid's error about a part of a request.
func BadForm(err error) *apierror.Error { return badForm(err, "") }

// proposalError translates the error of a proposal without a result. repeatable means that the same
// call again is safe although the first may have been applied: it has a request id, or asks for a
// HiLo range, where the worst result is a gap.
func proposalError(err error, repeatable bool) *apierror.Error {
	if known, ok := errors.AsType[*apierror.Error](err); ok {
		return known
	}
	if refusal := op.RefusalOf(err); refusal != nil {
		return refusalError(refusal)
	}
	if outcome.Of(err) == outcome.NotApplied {
		return notApplied(err)
	}
	e := &apierror.Error{
		Code: apierror.CodeAborted, Reason: apierror.ReasonOutcomeUnknown, Err: err,
		Message: "the call may or may not have taken effect; without a request id only the caller can find out",
	}
	if repeatable {
		e.Code, e.RetryAfter = apierror.CodeUnavailable, apierror.RetryBusy
		e.Message = "the call may or may not have taken effect; the same call again is safe"
	}
	return e
}

func notApplied(err error) *apierror.Error {
	switch outcome.ReasonOf(err) {
	case outcome.Overloaded:
		return apierror.Exhausted(apierror.ReasonOverloaded, "too many calls are waiting at this node", apierror.RetryBusy, err)
	case outcome.TooLarge:
		return apierror.Exhausted(apierror.ReasonQuota, "the request is too large for the log", 0, err)
	case outcome.StorageFull:
		return apierror.Exhausted(apierror.ReasonStorageFull, "the disk is nearly full", 0, err)
	case outcome.Starting:
		return apierror.Unavailable(apierror.ReasonStarting, "the node is starting", apierror.RetryStarting, err)
	case outcome.Stopping:
		return apierror.Stopping(err)
	case outcome.LeaderUnreachable:
		return apierror.Unavailable(apierror.ReasonLeaderUnreachable, causeOf(err, "the leader does not answer this node")+"; nothing happened",
			apierror.RetryQuorum, err)
	case outcome.Deadline:
		return apierror.Unavailable(apierror.ReasonNoQuorum, "no leader took the call in time; nothing happened", apierror.RetryQuorum, err)
	case outcome.Unspecified, outcome.NoQuorum, outcome.NotLeader, outcome.LeadershipLost, outcome.Storage, outcome.SessionLost,
		outcome.Invalid:
		return apierror.Unavailable(apierror.ReasonNoQuorum, "there is no leader, or no majority that follows it; nothing happened",
			apierror.RetryQuorum, err)
	default: // Of a newer leader.
		return apierror.Unavailable(apierror.ReasonNoQuorum, causeOf(err, err.Error())+"; nothing happened", apierror.RetryQuorum, err)
	}
}

// causeOf is the cause in an error of package outcome, in the words of whoever said it.
func causeOf(err error, otherwise string) string {
	if e, ok := errors.AsType[*outcome.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return otherwise
}

// readError translates why a linearizable read failed. A read changes nothing,
// so an unknown outcome is no outcome.
func readError(err error) *apierror.Error {
	if reason := outcome.ReasonOf(err); outcome.Of(err) == outcome.Unknown && reason != outcome.Deadline {
		return apierror.Unavailable(apierror.ReasonNoQuorum, "no majority confirmed the read", apierror.RetryQuorum, err)
	}
	return notApplied(err)
}

func etagError(err error) *apierror.Error {
	var starting etag.StartingError
	switch {
	case errors.As(err, &starting):
		return apierror.Unavailable(apierror.ReasonStarting, starting.Error(), apierror.RetryStarting, nil)
	case errors.Is(err, etag.ErrExhausted):
		return &apierror.Error{
			Code: apierror.CodeOutOfRange, Reason: apierror.ReasonCounterExhausted,
			Message: "the server-side etags of this database are used up", Err: err,
		}
	case errors.Is(err, etag.ErrTooManyDatabases):
		return apierror.Exhausted(apierror.ReasonQuota, "this node keeps etags for no more databases; see the setting max-databases", 0, err)
	case errors.Is(err, etag.ErrStalled):
		return apierror.Unavailable(apierror.ReasonOverloaded, "the disk did not answer in time; nothing was issued", apierror.RetryQuorum, err)
	case errors.Is(err, etag.ErrClosed):
		return apierror.Stopping(err)
	case errors.Is(err, etag.ErrBroken), errors.Is(err, etag.ErrCorrupt):
		return &apierror.Error{
			Code: apierror.CodeDataLoss, Reason: apierror.ReasonCorrupt, Message: "the node's own counters are damaged",
			Err: err,
		}
	default:
		return apierror.Internal(err)
	}
}

type refusalKind struct {
	code   apierror.Code
	reason string
}

var refusalKinds = map[raftlogv1.RefusalReason]refusalKind{
	raftlogv1.RefusalReason_REFUSAL_REASON_INVALID:            {apierror.CodeInvalidArgument, apierror.ReasonInvalidRequest},
	raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA:              {apierror.CodeResourceExhausted, apierror.ReasonQuota},
	raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED:  {apierror.CodeOutOfRange, apierror.ReasonCounterExhausted},
	raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY:        {apierror.CodeAborted, apierror.ReasonConcurrency},
	raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED:         {apierror.CodeAlreadyExists, apierror.ReasonIDClaimed},
	raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED:  {apierror.CodeAlreadyExists, apierror.ReasonRequestIDReused},
	raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED: {apierror.CodeFailedPrecondition, apierror.ReasonRequestIDExpired},
	raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN:          {apierror.CodeFailedPrecondition, apierror.ReasonNodeTagTaken},
	raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID:        {apierror.CodeInvalidArgument, apierror.ReasonInvalidNodeTag},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER:       {apierror.CodeFailedPrecondition, apierror.ReasonNotAMember},
	raftlogv1.RefusalReason_REFUSAL_REASON_IDENTITY_NOT_FOUND: {apierror.CodeNotFound, apierror.ReasonIdentityNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_CLAIM_NOT_FOUND:    {apierror.CodeNotFound, apierror.ReasonClaimNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND:   {apierror.CodeNotFound, apierror.ReasonMemberNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SETTING_INVALID:    {apierror.CodeInvalidArgument, apierror.ReasonInvalidSetting},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED:         {apierror.CodeFailedPrecondition, apierror.ReasonNotFormed},
	raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER:         {apierror.CodeFailedPrecondition, apierror.ReasonLastVoter},
	raftlogv1.RefusalReason_REFUSAL_REASON_LAST_MAX_INVALID:   {apierror.CodeInvalidArgument, apierror.ReasonInvalidLastMax},
	raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED: {apierror.CodeFailedPrecondition, apierror.ReasonFormatUnsupported},
	raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED:  {apierror.CodePermissionDenied, apierror.ReasonPermissionDenied},
	raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID:      {apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles},
	raftlogv1.RefusalReason_REFUSAL_REASON_SET_BACK:           {apierror.CodeDataLoss, apierror.ReasonCorrupt},
	raftlogv1.RefusalReason_REFUSAL_REASON_LOSES_QUORUM:       {apierror.CodeFailedPrecondition, apierror.ReasonLosesQuorum},
	raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_UNREACHABLE: {apierror.CodeFailedPrecondition, apierror.ReasonMemberUnreachable},
	raftlogv1.RefusalReason_REFUSAL_REASON_NOT_TRANSFERRED:    {apierror.CodeFailedPrecondition, apierror.ReasonNotTransferred},

	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID:         {apierror.CodeInvalidArgument, apierror.ReasonInvalidSeries},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NOT_FOUND:       {apierror.CodeNotFound, apierror.ReasonSeriesNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED:       {apierror.CodeFailedPrecondition, apierror.ReasonSeriesSuspended},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT:    {apierror.CodeAlreadyExists, apierror.ReasonKeyConflict},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_NOT_FOUND:   {apierror.CodeNotFound, apierror.ReasonNumberNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND: {apierror.CodeNotFound, apierror.ReasonScopeNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED:    {apierror.CodeFailedPrecondition, apierror.ReasonScopeClosed},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK:       {apierror.CodeFailedPrecondition, apierror.ReasonDateGoesBack},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN:   {apierror.CodeFailedPrecondition, apierror.ReasonTooManyOpen},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL:            {apierror.CodeOutOfRange, apierror.ReasonSeriesFull},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_EXPIRED:         {apierror.CodeFailedPrecondition, apierror.ReasonReservationExpired},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NUMBER_STATE:    {apierror.CodeFailedPrecondition, apierror.ReasonNumberState},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE:          {apierror.CodeFailedPrecondition, apierror.ReasonSeriesInUse},
	raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS:         {apierror.CodeFailedPrecondition, apierror.ReasonSeriesDiffers},

	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_NOT_FOUND: {apierror.CodeNotFound, apierror.ReasonPoolNotFound},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_DIFFERS:   {apierror.CodeFailedPrecondition, apierror.ReasonPoolDiffers},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_IN_USE:    {apierror.CodeFailedPrecondition, apierror.ReasonPoolInUse},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL:      {apierror.CodeResourceExhausted, apierror.ReasonPoolFull},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_ENDED:     {apierror.CodeOutOfRange, apierror.ReasonPoolEnded},
	raftlogv1.RefusalReason_REFUSAL_REASON_LEASE_PASSED:   {apierror.CodeFailedPrecondition, apierror.ReasonLeasePassed},
	raftlogv1.RefusalReason_REFUSAL_REASON_CLOCK_SKEW:     {apierror.CodeFailedPrecondition, apierror.ReasonClockSkew},
	raftlogv1.RefusalReason_REFUSAL_REASON_POOL_INVALID:   {apierror.CodeInvalidArgument, apierror.ReasonInvalidPool},
}

// reasonOfField is the reason for a text that the state refuses, by its field.
var reasonOfField = map[string]string{
	"name": apierror.ReasonInvalidName, "tag": apierror.ReasonInvalidTag, "id": apierror.ReasonInvalidID,
	"database": apierror.ReasonInvalidDatabase,
}

// refusalError translates a refusal of the state machine.
func refusalError(r *raftlogv1.Refusal) *apierror.Error {
	kind, ok := refusalKinds[r.GetReason()]
	if !ok { // Of a newer leader.
		kind = refusalKind{apierror.CodeFailedPrecondition, apierror.ReasonFormatUnsupported}
	}
	e := &apierror.Error{Code: kind.code, Reason: kind.reason, Message: r.GetDetail(), Field: r.GetField()}
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
	if reason, ok := reasonOfField[e.Field]; ok && e.Reason == apierror.ReasonInvalidRequest {
		e.Reason = reason
	}
	return e
}
