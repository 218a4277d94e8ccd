package commit

import (
	"context"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// open opens a session. The caller holds the lock, which is released meanwhile. Operations
// stay in the queue, where their callers can remove them.
func (s *groupSender) open() {
	s.g.mu.Unlock()
	defer s.g.mu.Lock()
	started := time.Now()
	number, origin, err := s.g.openOne()
	if err != nil {
		s.pause(started, err)
		return
	}
	s.session, s.origin = NewSession(number), origin
}

func (g *Gatherer) openOne() (uint64, []byte, error) {
	ctx, cancel := context.WithTimeout(g.halt, g.cfg.SendTimeout)
	defer cancel()
	number, origin, err := g.cfg.Opener.Open(ctx)
	if err != nil {
		g.cfg.Logger.Warn("could not open a session", "error", err)
		return 0, nil, err
	}
	g.cfg.Logger.Info("opened a session", "session", number)
	return number, origin, nil
}

// ProposeIdempotent commits one operation outside of any session and returns the state
// machine's result. The operation may be applied more than once and must be idempotent,
// as the announcement that opens a session is. It is sent in a group of its own. Its errors
// are *outcome.Error; ctx, or GiveUp, bounds the wait.
func (g *Gatherer) ProposeIdempotent(ctx context.Context, operation []byte) ([]byte, error) {
	if cost(operation) > g.cfg.MaxGroupBytes {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.GiveUp)
	defer cancel()
	stop := context.AfterFunc(g.halt, cancel)
	defer stop()
	data := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	return g.sendUntilAnswered(ctx, data)
}

func (g *Gatherer) sendUntilAnswered(ctx context.Context, data []byte) ([]byte, error) {
	var gr Group
	var r retry
	for {
		known, err := g.waitLeader(ctx)
		if err != nil {
			return nil, gr.outcome(outcome.ReasonOf(err), err)
		}
		result, err := g.sendOnce(ctx, known, data)
		if err == nil {
			return singleResult(result)
		}
		if v := gr.Failed(err, false); v.Next == GiveUp {
			return nil, v.Err
		}
		g.pause(ctx, &r)
	}
}

// sendOnce makes one attempt, which ends early if another node leads.
func (g *Gatherer) sendOnce(ctx context.Context, known reach, data []byte) (raftlog.GroupResult, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.SendTimeout)
	defer cancel()
	defer context.AfterFunc(known.led, cancel)()
	return g.cfg.Sender.Send(ctx, known.leader, data)
}

func singleResult(result raftlog.GroupResult) ([]byte, error) {
	if result.Status != raftlog.Applied || len(result.Results) != 1 {
		return nil, outcome.NewUnknown(outcome.Unspecified, errBadAnswer)
	}
	return result.Results[0], nil
}
