package commit

import (
	"context"
	"slices"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// merge takes groups for one entry. It returns nil when the Merger ends.
func (m *Merger) merge() ([]*submission, *leadership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		switch {
		case len(m.waiting) > 0 && m.gathered():
			return m.take(), m.leadership
		case m.closing && len(m.waiting) == 0:
			m.work.Broadcast()
			return nil, nil
		}
		m.work.Wait()
	}
}

// take takes the oldest groups that fit into one entry; the first always fits.
// Invariant: an entry never exceeds what raftlog decodes.
func (m *Merger) take() []*submission {
	m.linger.want = 0
	n, bytes, operations := 0, 0, 0
	for _, s := range m.waiting {
		bytes += len(s.group)
		operations += s.operations
		if n > 0 && (bytes > m.cfg.MaxEntryBytes || operations > raftlog.MaxOperations || n == raftlog.MaxGroups) {
			break
		}
		n++
		m.bytes -= len(s.group)
		m.operations -= s.operations
	}
	taken := slices.Clone(m.waiting[:n])
	m.waiting = slices.Delete(m.waiting, 0, n)
	return taken
}

// write is a writer's loop.
func (m *Merger) write() {
	var groups [][]byte
	for {
		submissions, r := m.merge()
		if submissions == nil {
			return
		}
		groups = groups[:0]
		for _, s := range submissions {
			groups = append(groups, s.group)
		}
		m.append(r, submissions, m.entry(groups))
		clear(groups)
	}
}

// entry writes an entry. What the leader decides, its clock above all, is
// decided here, once, so that every node reads the same.
func (m *Merger) entry(groups [][]byte) []byte {
	var h raftlog.Header
	h.Format, h.ClusterID = m.cfg.Header()
	h.TimeUnixNano = m.cfg.Now().UnixNano()
	return raftlog.AppendEntry(make([]byte, 0, raftlog.SizeEntry(h, groups)), h, groups)
}

// append proposes an entry, waits for what becomes of it, and tells all who
// submitted a group.
func (m *Merger) append(r *leadership, submissions []*submission, entry []byte) {
	started := time.Now()
	span := m.startSpan(submissions)
	if m.cfg.Events.Appending != nil {
		m.cfg.Events.Appending()
	}
	results, err := m.await(r, m.cfg.Log.Append(entry))
	took := time.Since(started)
	if err == nil && len(results) != len(submissions) {
		m.cfg.Logger.Error("the log's answer does not fit the entry", "groups", len(submissions), "results", len(results))
		err = outcome.NewUnknown(outcome.Unspecified, errBadAnswer)
	}
	if m.cfg.Events.Appended != nil {
		m.cfg.Events.Appended(len(submissions), operationsOf(submissions), len(entry), took, err)
	}
	endSpan(span, err)
	m.mu.Lock()
	m.expect(len(submissions), took)
	m.mu.Unlock()
	if err != nil {
		refuse(submissions, err)
		return
	}
	for i, s := range submissions {
		s.answer(results[i], nil)
	}
}

// startSpan starts an entry's span, if entries are traced.
func (m *Merger) startSpan(submissions []*submission) Span {
	if m.cfg.Events.StartSpan == nil {
		return nil
	}
	callers := make([]context.Context, len(submissions))
	for i, s := range submissions {
		callers[i] = s.caller
	}
	return m.cfg.Events.StartSpan(callers, operationsOf(submissions))
}

func operationsOf(submissions []*submission) int {
	n := 0
	for _, s := range submissions {
		n += s.operations
	}
	return n
}
