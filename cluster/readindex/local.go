package readindex

import (
	"context"
	"errors"

	"github.com/idnode/idnode/internal/outcome"
)

// Raft is what a leader's read index is made of.
type Raft interface {
	// CommitIndex returns the newest index known to be committed.
	CommitIndex() uint64
	// Term returns the current term.
	Term() uint64
	// Verify asks a quorum whether this node still leads, and returns soon after ctx
	// ended. It must count only replies to messages sent after the call. hashicorp/raft's
	// own check does not: it also counts replies to earlier heartbeats, which mislead a
	// leader that was paused during an election.
	Verify(ctx context.Context) error
	// Ready returns what this node knows as the leader: its term, the index of a barrier
	// issued in it, and the newest index that the state machine saw up to that barrier.
	// ok is false while the node does not lead, or the barrier has not been passed.
	Ready() (ready Ready, ok bool)
}

// Ready is a leader's record of its first barrier.
//
// Invariant: every index above Barrier reaches the state machine, during the term: the
// leader issues no second barrier, and the state machine gets configuration entries as
// well.
type Ready struct {
	// Term is the term in which the barrier was issued.
	Term uint64
	// Barrier is the barrier's index. Applied is an index that the state machine has seen, not
	// below the newest index at or below Barrier that it sees.
	Barrier, Applied uint64
}

// Local finds read indexes on the leader. It is safe for concurrent use. This node's Reader and
// the calls of other nodes share a Local, and so its rounds. The errors of ReadIndex are
// *outcome.Error with NotApplied: NotLeader if this node does not lead or is not ready to, NoQuorum
// if the quorum did not confirm that it does. It tries once, and never asks another node.
type Local struct {
	*rounds
	raft Raft
}

// NewLocal starts a Local; Close ends it.
func NewLocal(raft Raft) *Local {
	l := &Local{raft: raft}
	l.rounds = newRounds(l.find)
	return l
}

// find is one round. Its correctness rests on the order of its steps:
//
//  1. The commit index is read first. Every write answered before the round began was
//     committed by a leader of this term or an earlier one, and the barrier covers the
//     earlier ones.
//  2. Then a quorum confirms that there was no newer leader at that time: so no write
//     unknown to this node had been answered.
//  3. The term must not have changed: otherwise this node may have lost and regained
//     leadership, and others may have answered writes in between.
func (l *Local) find(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultRoundTimeout)
	defer cancel()
	ready, ok := l.raft.Ready()
	if !ok || l.raft.Term() != ready.Term {
		return 0, outcome.NewNotApplied(outcome.NotLeader, nil)
	}
	index := l.raft.CommitIndex()
	if err := l.raft.Verify(ctx); err != nil {
		return 0, verifyError(err)
	}
	if l.raft.Term() != ready.Term {
		return 0, outcome.NewNotApplied(outcome.NotLeader, errTermChanged)
	}
	return visible(index, ready), nil
}

// visible returns the newest index at or below index that the state machine sees.
// Barriers and the first entry of a term never reach it: a wait for such an index might
// last until the next write.
func visible(index uint64, ready Ready) uint64 {
	if index <= ready.Barrier {
		return ready.Applied
	}
	return index
}

// errTermChanged is the cause when an election took place during a round.
var errTermChanged = errors.New("the term changed")

// verifyError keeps Verify's own errors; any other error means that no quorum confirmed
// in time.
func verifyError(err error) error {
	var known *outcome.Error
	if errors.As(err, &known) {
		return readError(err)
	}
	return outcome.NewNotApplied(outcome.NoQuorum, err)
}
