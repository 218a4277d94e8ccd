package commit

import (
	"errors"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// Group is the state of one group, from its cut until it is settled, and the decisions
// about it: whether it may be sent, and what the end of an attempt means for its callers.
// It is a comparable value, without lock, clock or network. A group sender carries the
// decisions out.
type Group struct {
	session  uint64
	sequence uint64
	// tainted means that an attempt ended without an answer: the group may be in a log.
	tainted bool
}

// Next is the next step of a group.
type Next uint8

const (
	// Send the group, for the first time or again, byte for byte.
	Send Next = iota + 1
	// Wait for a way to the leader, or for the last caller to leave.
	Wait
	// Deliver the results: each caller gets its own, and the group is settled.
	Deliver
	// PutBack the operations whose callers still wait into the queue: none is in a log. The
	// group is settled, and its number is not used again.
	PutBack
	// GiveUp the group: its callers get Verdict.Err, and it is settled.
	GiveUp
)

// Verdict is the meaning of an attempt's end.
type Verdict struct {
	// Next is Deliver, Send, PutBack or GiveUp.
	Next Next
	// Err is the error of a group's callers with GiveUp, the reason with PutBack, and the
	// attempt's error with Send.
	Err error
	// SessionEnded means that the next group needs a new session.
	SessionEnded bool
	// Late means that no leader has answered for GiveUp: the queued operations get no group
	// either.
	Late bool
}

// Message returns the group as the message to send. Its origin is the node's Raft id. It
// acknowledges the groups before it, which are settled.
func (g *Group) Message(origin []byte, operations [][]byte) raftlog.Group {
	return raftlog.Group{
		Origin: origin, Session: g.session, Sequence: g.sequence, Acknowledged: g.sequence - 1,
		Operations: operations,
	}
}

// Begin returns whether an attempt begins: Send, Wait or PutBack. lost means that there is
// no quorum or no leader, wanted that a caller waits for the group.
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

var errBadAnswer = errors.New("the leader's answer does not fit the group")

// Answered returns the meaning of the state machine's answer to a group with this number
// of operations.
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

// Failed returns the meaning of an attempt without an answer. late means that the group's
// attempts have lasted for GiveUp.
func (g *Group) Failed(err error, late bool) Verdict {
	refused := outcome.Of(err) == outcome.NotApplied
	g.tainted = g.tainted || !refused
	switch {
	case refused && final(err), outcome.ReasonOf(err) == outcome.TooLarge:
		// A group or an answer that is too large is too large again the next time.
		return Verdict{Next: GiveUp, Err: g.outcome(outcome.ReasonOf(err), err)}
	case !g.tainted:
		return Verdict{Next: PutBack, Err: err}
	case late:
		return Verdict{Next: GiveUp, Err: outcome.NewUnknown(outcome.NoQuorum, err), Late: true}
	default:
		return Verdict{Next: Send, Err: err}
	}
}

// Abandoned returns the error of a caller that no longer waits: NotApplied for an operation
// in no group, which is removed from the queue, otherwise Unknown.
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
