package commit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// nextBatch returns the groups of the next entry, or nil when the Batcher ends.
func (b *Batcher) nextBatch() ([]*submission, *leadership) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case len(b.waiting) > 0 && b.gathered() && (b.leadership == nil || !b.leadership.held):
			return b.pop(), b.leadership
		case b.closing && len(b.waiting) == 0:
			return nil, nil
		}
		b.work.Wait()
	}
}

// pop returns the oldest groups that fit into one entry; the first always fits.
// Invariant: an entry never exceeds what raftlog decodes.
func (b *Batcher) pop() []*submission {
	b.linger.want = 0
	n, bytes, operations := 0, 0, 0
	for _, s := range b.waiting {
		bytes += len(s.group)
		operations += s.operations
		if n > 0 && (bytes > b.cfg.MaxEntryBytes || operations > raftlog.MaxOperations || n == raftlog.MaxGroups) {
			break
		}
		n++
		b.bytes -= len(s.group)
		b.operations -= s.operations
	}
	taken := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	return taken
}

func (b *Batcher) write() {
	var groups [][]byte
	for {
		submissions, r := b.nextBatch()
		if submissions == nil {
			return
		}
		groups = groups[:0]
		for _, s := range submissions {
			groups = append(groups, s.group)
		}
		b.append(r, submissions, b.entry(groups))
		clear(groups)
	}
}

// entry encodes an entry. The leader's decisions, such as the time of its clock, are made
// here, so that every node applies the same values.
func (b *Batcher) entry(groups [][]byte) []byte {
	var h raftlog.Header
	h.Format, h.ClusterID = b.cfg.Header()
	h.TimeUnixNano = b.cfg.Now().UnixNano()
	return raftlog.AppendEntry(make([]byte, 0, raftlog.SizeEntry(h, groups)), h, groups)
}

func (b *Batcher) append(r *leadership, submissions []*submission, entry []byte) {
	started := time.Now()
	span := b.startSpan(submissions)
	b.cfg.Events.Appending()
	results, err := b.await(r, b.cfg.Log.Append(entry))
	took := time.Since(started)
	if err == nil && len(results) != len(submissions) {
		b.cfg.Logger.Error("the log's answer does not fit the entry", "groups", len(submissions), "results", len(results))
		err = outcome.NewUnknown(outcome.Unspecified, errBadAnswer)
	}
	b.cfg.Events.Appended(len(submissions), operationsOf(submissions), len(entry), took, err)
	endSpan(span, err)
	b.mu.Lock()
	b.expect(len(submissions), took)
	b.mu.Unlock()
	if err != nil {
		refuse(submissions, err)
		return
	}
	for i, s := range submissions {
		s.answer(results[i], nil)
	}
}

func (b *Batcher) startSpan(submissions []*submission) Span {
	if b.cfg.Events.StartSpan == nil {
		return nil
	}
	callers := make([]context.Context, len(submissions))
	for i, s := range submissions {
		callers[i] = s.caller
	}
	return b.cfg.Events.StartSpan(callers, operationsOf(submissions))
}

func operationsOf(submissions []*submission) int {
	n := 0
	for _, s := range submissions {
		n += s.operations
	}
	return n
}

var errNoAnswer = errors.New("no answer from the log in time")

// await waits for the outcome of an entry, at most for AnswerTimeout, and at most for
// grace once the leadership has ended. Raft may never resolve a proposal (hashicorp/raft
// issue 498), so the wait does not depend on Raft alone. The error is an *outcome.Error.
//
// The grace: entries that a majority had before the leadership ended still resolve as applied,
// and refusals as not applied; both are better answers than Unknown.
func (b *Batcher) await(r *leadership, appended <-chan Appended) ([]raftlog.GroupResult, error) {
	timeout := time.NewTimer(b.cfg.AnswerTimeout)
	defer timeout.Stop()
	reason, ended := outcome.NoQuorum, r.ctx.Done()
	for {
		select {
		case a := <-appended:
			return a.Results, a.Err
		case <-ended:
			timeout.Reset(grace)
			reason, ended = outcome.LeadershipLost, nil
		case <-timeout.C:
			return nil, outcome.NewUnknown(reason, errNoAnswer)
		case <-b.halt.Done():
			return nil, outcome.NewUnknown(outcome.Stopping, errNoAnswer)
		}
	}
}
