package commit

import (
	"errors"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// errNoAnswer is the cause when the log did not report an entry's outcome in time.
var errNoAnswer = errors.New("no answer from the log in time")

// await waits for the outcome of an entry, at most for AnswerTimeout, and at most for
// Grace once the leadership has ended. Raft may never resolve a proposal (hashicorp/raft
// issue 498), so the wait does not depend on Raft alone. The error is an *outcome.Error.
func (b *Batcher) await(r *leadership, f Future) ([]raftlog.GroupResult, error) {
	timeout := time.NewTimer(b.cfg.AnswerTimeout)
	defer timeout.Stop()
	select {
	case <-f.Done():
		return futureResult(f)
	case <-timeout.C:
		return nil, noAnswer(outcome.NoQuorum)
	case <-b.halt.Done():
		return nil, noAnswer(outcome.Stopping)
	case <-r.ctx.Done():
		return b.awaitGrace(f)
	}
}

// awaitGrace waits a little longer for the log. Entries that a majority had before the
// leadership ended still resolve as applied, and refusals as not applied; both are better
// answers than Unknown.
func (b *Batcher) awaitGrace(f Future) ([]raftlog.GroupResult, error) {
	grace := time.NewTimer(b.cfg.Grace)
	defer grace.Stop()
	select {
	case <-f.Done():
		return futureResult(f)
	case <-grace.C:
		return nil, noAnswer(outcome.LeadershipLost)
	case <-b.halt.Done():
		return nil, noAnswer(outcome.Stopping)
	}
}

// noAnswer returns Unknown, with the reason that ended the wait.
func noAnswer(reason outcome.Reason) error { return outcome.NewUnknown(reason, errNoAnswer) }

func futureResult(f Future) ([]raftlog.GroupResult, error) {
	results, err := f.Results()
	if err == nil {
		return results, nil
	}
	var known *outcome.Error
	if errors.As(err, &known) {
		return nil, known
	}
	return nil, outcome.NewUnknown(outcome.Unspecified, err)
}
