package series

import (
	"fmt"
	"strings"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Error is why a call was refused. Field is the field of the request, or of the definition, that is
// at fault.
type Error raftlogv1.Refusal

func (e *Error) Error() string { return e.Detail }

func refuse(reason raftlogv1.RefusalReason, field, detail string, args ...any) *Error {
	return &Error{Reason: reason, Field: field, Detail: fmt.Sprintf(detail, args...)}
}

// invalid is a field that is wrong whatever the series' state is.
func invalid(field, detail string) *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, field, "%s %s", field, detail)
}

// wrongVersion means that the definition is not the expected one.
func wrongVersion(version, expected int64) *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected_version",
		"the definition has version %d, not %d", version, expected)
}

func suspended() *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED, "series",
		"the series was restored or recovered, and gives no numbers until somebody has looked at the books and resumes it")
}

// differs means that a series of a backup is another one of that name, or that it went on in two
// clusters: a number is another key's there, a scope begins elsewhere, or the texts are others.
func differs(detail string, args ...any) *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS, "record", detail, args...)
}

// conflict means that a key has a number of another scope or date.
func conflict(first *raftlogv1.SeriesNumber) *Error {
	e := refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT, "keys", "key %q has number %d of %s, of %s",
		first.GetKey(), first.GetNumber(), name(first.GetScope()), format.Date(first.GetDate()))
	e.SeriesNumber = first
	return e
}

// full means that the series would have more keys or scopes than it may.
func full(limit int64, what string) *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, "keys", "the series may have %d %s", limit, what)
}

// wrongState means that a number's state excludes the call.
func wrongState(key string, number int64, state NumberState, reason string) *Error {
	text := fmt.Sprintf("number %d of key %q is %s", number, key, state)
	if key == "" {
		text = fmt.Sprintf("number %d is %s", number, state)
	}
	if reason != "" {
		text += ": " + reason
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NUMBER_STATE, "keys", "%s", text)
}

// otherNumber means that a key has another number than its caller believes.
func otherNumber(key string, number, claimed int64) *Error {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "keys", "key %q has number %d, not %d", key, number, claimed)
}

// VerifyError is the first thing that is not as it must be.
type VerifyError struct {
	Scope  []string
	Number int64
	Detail string
}

func (e *VerifyError) Error() string {
	return fmt.Sprintf("number %d of %s %s", e.Number, name(e.Scope), e.Detail)
}

// name is a scope for people.
func name(scope []string) string {
	if len(scope) == 0 {
		return "the series"
	}
	return strings.Join(scope, " ")
}
