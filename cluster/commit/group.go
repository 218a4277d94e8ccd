package commit

import (
	"errors"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Group decides about one group, from its cut until it is settled: whether it may be sent,
// and what an attempt's end means for its callers. It is a comparable value, without lock,
// clock or network. A group sender carries out what it says.
type Group struct {
	session      uint64
	sequence     uint64
	acknowledged uint64
	// tainted means that an attempt ended without an answer: the group may be in a log.
	tainted bool
}

// Next is what is to be done with a group.
type Next uint8

const (
	// Send it, for the first time or again, byte for byte.
	Send Next = iota + 1
	// Wait for a way to the leader, or for the last caller to leave.
	Wait
	// Deliver the results: each caller gets its own, and the group is settled.
	Deliver
	// PutBack the operations of callers that still wait into the queue: none of them is in
	// a log. The group is settled, and its number is not used again.
	PutBack
	// GiveUp the group: its callers get Verdict.Err, and it is settled.
	GiveUp
)

// Verdict is what the end of an attempt means.
type Verdict struct {
	// Next is Deliver, Send, PutBack or GiveUp.
	Next Next
	// Err is what the callers of a group that is given up get. Of operations that are put
	// back it is why, and of a group to be sent again what the attempt ended with.
	Err error
	// SessionEnded says that the next group needs a new session.
	SessionEnded bool
	// Late says that no leader has answered for GiveUp: the operations that wait get no
	// group either.
	Late bool
}

// Message returns the group as it is sent. Its origin is the node's Raft id.
func (g *Group) Message(origin []byte, operations [][]byte) raftlog.Group {
	return raftlog.Group{
		Origin: origin, Session: g.session, Sequence: g.sequence, Acknowledged: g.acknowledged,
		Operations: operations,
	}
}

// Begin says whether an attempt begins. lost means that there is no quorum or no leader,
// wanted that a caller waits for the group. Its answer is Send, Wait or PutBack.
func (g *Group) Begin(lost, wanted bool) Next {
	switch {
	case !wanted:
		return PutBack
	case !lost:
		return Send
	case g.tainted:
		return Wait
	default:
		return PutBack
	}
}

// errBadAnswer is the cause when a leader does not answer with one result per operation.
var errBadAnswer = errors.New("the leader's answer does not fit the group")

// Answered says what the state machine's answer to a group of so many operations means.
func (g *Group) Answered(result raftlog.GroupResult, operations int) Verdict {
	switch {
	case result.Status == raftlog.Applied && len(result.Results) == operations:
		return Verdict{Next: Deliver}
	case result.Status == raftlog.StaleSession && !g.tainted:
		// No attempt took effect, and none will in a session that has ended: the
		// operations may go into a new one.
		return Verdict{Next: PutBack, SessionEnded: true, Err: outcome.NewNotApplied(outcome.SessionLost, nil)}
	case result.Status == raftlog.StaleSession, result.Status == raftlog.StaleSequence:
		return Verdict{Next: GiveUp, SessionEnded: true, Err: outcome.NewUnknown(outcome.SessionLost, nil)}
	default:
		return Verdict{Next: GiveUp, Err: outcome.NewUnknown(outcome.Unspecified, errBadAnswer)}
	}
}

// Failed says what an attempt without an answer means. late means that the group has been
// sent for GiveUp.
func (g *Group) Failed(err error, late bool) Verdict {
	refused := outcome.Of(err) == outcome.NotApplied
	g.tainted = g.tainted || !refused
	switch {
	case refused && final(err), outcome.ReasonOf(err) == outcome.TooLarge:
		// What is too large to send, the group or its answer, is so the next time too.
		return Verdict{Next: GiveUp, Err: g.outcome(outcome.ReasonOf(err), err)}
	case !g.tainted:
		return Verdict{Next: PutBack, Err: err}
	case late:
		return Verdict{Next: GiveUp, Err: outcome.NewUnknown(outcome.NoQuorum, err), Late: true}
	default:
		return Verdict{Next: Send, Err: err}
	}
}

// Abandoned is what a caller hears that waits no longer: an operation that is in no group
// is taken out of the queue, and never was in a log.
func Abandoned(inGroup bool, cause error) error {
	if inGroup {
		return outcome.NewUnknown(outcome.Deadline, cause)
	}
	return outcome.NewNotApplied(outcome.Deadline, cause)
}

// final reports whether another leader would refuse the group for the same reason, or a
// retry would add to an overload.
func final(err error) bool {
	switch outcome.ReasonOf(err) {
	case outcome.Overloaded, outcome.StorageFull, outcome.Invalid:
		return true
	default:
		return false
	}
}

// outcome is Unknown for a tainted group, and NotApplied otherwise.
func (g *Group) outcome(reason outcome.Reason, cause error) error {
	if g.tainted {
		return outcome.NewUnknown(reason, cause)
	}
	return outcome.NewNotApplied(reason, cause)
}
