package jsonapi

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/idnode/idnode/server/apierror"
)

// Headers that bound a call, and how many digits they may have.
const (
	connectTimeout       = "Connect-Timeout-Ms"
	grpcTimeout          = "Grpc-Timeout"
	connectTimeoutDigits = 10
	grpcTimeoutDigits    = 8
)

var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// withTimeout bounds a call by the timeout in its headers. The service bounds every call too.
func withTimeout(r *http.Request) (context.Context, context.CancelFunc, error) {
	timeout, ok := time.Duration(math.MaxInt64), true
	if text := r.Header.Get(connectTimeout); text != "" {
		timeout, ok = parseTimeout(text, connectTimeoutDigits, time.Millisecond)
	} else if text := r.Header.Get(grpcTimeout); text != "" {
		last := len(text) - 1
		unit := grpcUnits[text[last]]
		if timeout, ok = parseTimeout(text[:last], grpcTimeoutDigits, unit); unit == 0 {
			ok = false
		}
	}
	if !ok || timeout == 0 {
		return nil, nil, &apierror.Error{
			Code: apierror.CodeInvalidArgument, Reason: apierror.ReasonInvalidTimeout, Field: "timeout",
			Message: connectTimeout + " is a number of milliseconds, " + grpcTimeout + " one with a unit of H, M, S, m, u or n, above 0",
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, nil
}

// parseTimeout reads a number of units; what is too long for a time.Duration is its longest.
func parseTimeout(text string, digits int, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > digits {
		return 0, false
	}
	if unit > 0 && int64(n) > math.MaxInt64/int64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}
