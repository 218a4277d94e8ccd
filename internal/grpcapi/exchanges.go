package grpcapi

import (
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/internal/service"
)

// exchanges are the bounds that all Exchange streams of a server share.
type exchanges struct {
	perStream, inAll, atOnce int64
	// held is how many calls of all streams were let in and are not rid of their
	// replies, running how many of them have none.
	held, running atomic.Int64
	// What calls that are not let in are answered; there may be very many.
	overloaded, double *refusal
}

// newExchanges returns the bounds: on the calls that one stream and all of them
// hold, and on those that run at once.
func newExchanges(perStream, inAll, atOnce int) *exchanges {
	return &exchanges{
		perStream: int64(perStream), inAll: int64(inAll), atOnce: int64(atOnce),
		overloaded: newRefusal(statusError(&service.Error{
			Code: service.ResourceExhausted, Reason: service.ReasonOverloaded,
			Message: "too many calls are under way on this stream, or at this node", RetryAfter: 100 * time.Millisecond,
		})),
		double: newRefusal(statusError(badRequest(
			service.ReasonInvalidCorrelation, "correlation", "a call with this correlation number is under way",
		))),
	}
}

// enter lets a call in, if there is room; ran and leave take it out again.
func (e *exchanges) enter() bool {
	if e.running.Add(1) > e.atOnce {
		e.running.Add(-1)
		return false
	}
	if e.held.Add(1) > e.inAll {
		e.turnAway()
		return false
	}
	return true
}

// turnAway takes back what enter did.
func (e *exchanges) turnAway() {
	e.ran(1)
	e.leave(1)
}

// ran says that n calls have their replies.
func (e *exchanges) ran(n int) { e.running.Add(-int64(n)) }

// leave says that n replies are on their way.
func (e *exchanges) leave(n int) { e.held.Add(-int64(n)) }

// exchangesShare is how many of the calls that a node takes at once may be those of
// streams: most, but never so many that callers who make one call at a time find no
// place beside streams that could fill the node alone.
func exchangesShare(maxInFlight int) int { return max(1, maxInFlight-maxInFlight/4) }
