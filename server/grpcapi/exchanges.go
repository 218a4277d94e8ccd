package grpcapi

import (
	"sync/atomic"

	"github.com/idnode/idnode/server/apierror"
)

// exchanges are the bounds that all Exchange streams of a server share.
type exchanges struct {
	perStream, atOnce int64
	// running is how many calls have no reply, idle how many workers have no call.
	running, idle atomic.Int64
	// What calls that are not let in are answered; there may be very many.
	overloaded, double *refusal
	// refusalBytes bounds the answer to a refused call.
	refusalBytes int
}

// newExchanges returns the bounds on the calls of one stream, and on those that run at once.
func newExchanges(perStream, atOnce int) *exchanges {
	e := &exchanges{
		perStream: int64(perStream), atOnce: int64(atOnce),
		overloaded: newRefusal(statusError(apierror.ErrOverloaded)),
		double: newRefusal(statusError(badRequest(
			apierror.ReasonInvalidCorrelation, "correlation", "a call with this correlation number is in flight",
		))),
	}
	e.refusalBytes = headBytes + max(len(e.overloaded.reply), len(e.double.reply))
	return e
}

// enter lets a call in, if there is room; ran takes it out again.
func (e *exchanges) enter() bool {
	if e.running.Add(1) > e.atOnce {
		e.running.Add(-1)
		return false
	}
	return true
}

func (e *exchanges) ran(n int) { e.running.Add(-int64(n)) }

// exchangesShare is the part of a node's calls in flight that streams may take: most, but some places
// are left for callers with one call at a time.
func exchangesShare(maxInFlight int) int { return max(1, maxInFlight-maxInFlight/4) }
