package service

import (
	"strings"

	"github.com/idnode/idnode/server/apierror"
)

// IdempotencyKeyHeader is the header of HTTP requests that has a request id, as the IETF's draft
// "The Idempotency-Key HTTP Header Field" names it: with or without the quotes of that draft.
const IdempotencyKeyHeader = "Idempotency-Key"

// IdempotencyKey returns the request id of a call whose own field or parameter has named, "" for none;
// values are those of the header. The call's bounds on request ids are checked where it is made.
func IdempotencyKey(values []string, named string) (string, error) {
	if len(values) == 0 {
		return named, nil
	}
	key := strings.TrimSpace(values[0])
	if n := len(key); n > 1 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	switch {
	case len(values) > 1:
		return "", apierror.Invalid(apierror.ReasonInvalidRequestID, IdempotencyKeyHeader, "the header is given %d times", len(values))
	case key == "":
		return "", apierror.Invalid(apierror.ReasonInvalidRequestID, IdempotencyKeyHeader, "the header is empty")
	case named != "" && named != key:
		return "", apierror.Invalid(apierror.ReasonInvalidRequestID, IdempotencyKeyHeader, "the header and the request name two request ids")
	}
	return key, nil
}
