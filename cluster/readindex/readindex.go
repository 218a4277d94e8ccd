// Package readindex makes reads linearizable without writing to the log. A read asks for
// a read index, waits until its own node has applied everything up to it, and then reads
// locally: it sees every change that was answered before the read began.
//
// The package owns the rounds in which read indexes are found: one quorum check on the leader,
// or one call to it from a follower, serves all waiters. It does not own the calls between
// nodes, nor the wait for the state.
//
// Invariant: a waiter is served by a round that began after the waiter arrived. A round already
// in flight is never joined, because its commit index was read, or its heartbeats were sent,
// earlier: a write answered in between would be missed. So a read that arrives during a round
// waits for the next, and a round serves all reads that arrived during the previous one
// (raft thesis 6.4).
package readindex

import (
	"context"
	"errors"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/pause"
)

const (
	// maxWaiters bounds how many calls wait at a time.
	maxWaiters = 65536
	// defaultRoundTimeout bounds one quorum check, or one call to the leader. A leader that is
	// cut off loses its leadership earlier, by Raft's lease; this is for a Raft that hangs.
	defaultRoundTimeout = time.Second
)

// Waits between rounds that failed.
const (
	firstBackoff = 10 * time.Millisecond
	lastBackoff  = 100 * time.Millisecond
)

// Config is what a Reader needs: all of it.
type Config struct {
	// Self is this node's Raft id.
	Self string
	// WaitLeader waits for a leader with a quorum and returns its Raft id, or an
	// *outcome.Error: see commit.Gatherer.
	WaitLeader func(ctx context.Context) (string, error)
	Local      *Local
	// AskRemote asks another node, which leads, for a read index. The index must come from a
	// round that began after the call, as Local.ReadIndex gives it. AskRemote returns soon
	// after ctx ended. Its errors are *outcome.Error.
	AskRemote func(ctx context.Context, leader string) (uint64, error)
	// WaitApplied waits until the local state machine has applied everything up to index. It
	// returns an error only if ctx ended, or if the index will not be reached.
	WaitApplied func(ctx context.Context, index uint64) error
	// Limit bounds the retries of a round, and with a quarter more also the wait of a
	// read for the local state. It must be longer than an election, and equals the wait
	// of writes for a leader.
	Limit time.Duration
}

// Reader makes this node's reads linearizable, on the leader and on followers
// alike. It is safe for concurrent use.
type Reader struct {
	*rounds
	cfg          Config
	roundTimeout time.Duration
}

// New starts a Reader; Close ends it.
func New(cfg Config) *Reader {
	r := &Reader{cfg: cfg, roundTimeout: defaultRoundTimeout}
	r.rounds = newRounds(r.find)
	return r
}

// Linearize waits until the local state is at least as new as the call. Its
// errors are *outcome.Error with NotApplied, since a read changes nothing.
func (r *Reader) Linearize(ctx context.Context) error {
	begin := time.Now()
	index, err := r.ReadIndex(ctx)
	if err != nil {
		return err
	}
	return r.waitApplied(ctx, index, begin.Add(r.cfg.Limit))
}

// waitApplied waits for the local state until the given time, and a quarter of Limit at
// least. A node that is cut off after it learned the index never reaches it, however long
// its caller would wait.
func (r *Reader) waitApplied(ctx context.Context, index uint64, until time.Time) error {
	if least := time.Now().Add(r.cfg.Limit / 4); until.Before(least) {
		until = least
	}
	bounded, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := r.cfg.WaitApplied(bounded, index)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && bounded.Err() != nil:
		return outcome.NewNotApplied(outcome.NoQuorum, errBehind)
	default:
		return readError(err)
	}
}

// errBehind is the cause when a read index was found and not reached.
var errBehind = errors.New("this node did not catch up with its leader in time")

// find is one round: it asks the leader repeatedly, for at most Limit. Retries keep the
// invariant, because all waiters of the round arrived before its first attempt.
func (r *Reader) find(ctx context.Context) (uint64, error) {
	deadline := time.Now().Add(r.cfg.Limit)
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		leader, err := r.cfg.WaitLeader(ctx)
		if err != nil {
			return 0, readError(err)
		}
		index, err := r.ask(ctx, leader)
		if err == nil {
			return index, nil
		}
		if ctx.Err() != nil || time.Until(deadline) < backoff {
			return 0, giveUpError(err)
		}
		pause.For(ctx, backoff)
	}
}

func (r *Reader) ask(ctx context.Context, leader string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.roundTimeout)
	defer cancel()
	if leader == r.cfg.Self {
		return r.cfg.Local.ReadIndex(ctx)
	}
	return r.cfg.AskRemote(ctx, leader)
}

// giveUpError is the waiters' error when retries failed.
func giveUpError(cause error) error {
	switch reason := outcome.ReasonOf(cause); reason {
	case outcome.Overloaded, outcome.Starting, outcome.Stopping:
		return outcome.NewNotApplied(reason, cause)
	default:
		return outcome.NewNotApplied(outcome.NoQuorum, cause)
	}
}

// readError turns any error into NotApplied with the same reason.
func readError(err error) error {
	var known *outcome.Error
	switch {
	case errors.As(err, &known) && known.Outcome == outcome.NotApplied:
		return known
	case errors.As(err, &known):
		return outcome.NewNotApplied(known.Reason, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcome.NewNotApplied(outcome.Deadline, err)
	default:
		return outcome.NewNotApplied(outcome.Unspecified, err)
	}
}
