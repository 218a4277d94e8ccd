package commit

import (
	"errors"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// errNoAnswer is the cause when the log did not say in time what became of an
// entry.
var errNoAnswer = errors.New("no answer from the log in time")

// await waits for what becomes of an entry: for the log's own word, at most for
// AnswerTimeout, and after the end of the leadership at most for Grace. Raft may
// forget a proposal altogether (hashicorp/raft issue 498), so nobody waits for
// its word alone. The error is an *outcome.Error.
func (b *Batcher) await(r *leadership, f Future) ([]raftlog.GroupResult, error) {
	timeout := time.NewTimer(b.cfg.AnswerTimeout)
	defer timeout.Stop()
	select {
	case <-f.Done():
		return said(f)
	case <-timeout.C:
		return nil, noAnswer(outcome.NoQuorum)
	case <-b.halt.Done():
		return nil, noAnswer(outcome.Stopping)
	case <-r.ctx.Done():
		return b.awaitGrace(f)
	}
}

// awaitGrace gives the log a last moment. Entries that a majority had before
// the leadership ended still come out as applied, and refusals as not applied; both
// say more than Unknown.
func (b *Batcher) awaitGrace(f Future) ([]raftlog.GroupResult, error) {
	grace := time.NewTimer(b.cfg.Grace)
	defer grace.Stop()
	select {
	case <-f.Done():
		return said(f)
	case <-grace.C:
		return nil, noAnswer(outcome.LeadershipLost)
	case <-b.halt.Done():
		return nil, noAnswer(outcome.Stopping)
	}
}

// noAnswer is Unknown, for a reason that says what ended the wait.
func noAnswer(reason outcome.Reason) error { return outcome.NewUnknown(reason, errNoAnswer) }

// said returns what a future says that is done.
func said(f Future) ([]raftlog.GroupResult, error) {
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
