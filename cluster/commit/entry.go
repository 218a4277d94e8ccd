package commit

import (
	"slices"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// expect starts the wait for company after an entry of so many groups.
func (m *Merger) expect(groups int) {
	if m.cfg.Company > 0 && groups > 1 && !m.closing {
		m.company.expect(groups, m.cfg.Company, &m.mu, &m.work)
	}
}

// gathered says whether what waits may go as an entry.
func (m *Merger) gathered() bool {
	return len(m.waiting) >= m.company.want || m.bytes >= m.cfg.MaxEntryBytes || m.closing
}

// merge takes groups for one entry. It returns nil when the Merger ends.
func (m *Merger) merge() ([]*submission, *reign) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		switch {
		case len(m.waiting) > 0 && m.gathered():
			return m.take(), m.reign
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
	m.company.want = 0
	n, bytes, operations := 0, 0, 0
	for _, s := range m.waiting {
		bytes += len(s.group)
		operations += s.operations
		if n > 0 && (bytes > m.cfg.MaxEntryBytes || operations > raftlog.MaxOperations || n == raftlog.MaxGroups) {
			break
		}
		n++
		m.bytes -= len(s.group)
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
func (m *Merger) append(r *reign, submissions []*submission, entry []byte) {
	started := time.Now()
	results, err := m.await(r, m.cfg.Log.Append(entry))
	if err == nil && len(results) != len(submissions) {
		m.cfg.Logger.Error("the log's answer does not fit the entry", "groups", len(submissions), "results", len(results))
		err = outcome.NewUnknown(outcome.Unspecified, errBadAnswer)
	}
	if m.cfg.Events.Appended != nil {
		m.cfg.Events.Appended(len(submissions), len(entry), time.Since(started), err)
	}
	m.mu.Lock()
	m.expect(len(submissions))
	m.mu.Unlock()
	if err != nil {
		refuse(submissions, err)
		return
	}
	for i, s := range submissions {
		s.answer(results[i], nil)
	}
}
