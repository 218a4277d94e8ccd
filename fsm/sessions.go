package fsm

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// maxUnacknowledged bounds the lead of a group's sequence number over the numbers acknowledged by
// its origin, and so the results that a session keeps.
const maxUnacknowledged = 64

// session is the record of a node's start, so that its groups are applied once however often the
// node sends them.
type session struct {
	origin nodeid.ID
	// number is the log index of the announcement that opened it.
	number uint64
	// acknowledged is the sequence number up to which the node has all results.
	acknowledged uint64
	// results are those of the groups above acknowledged, by sequence number,
	// ascending.
	results []sessionResult
}

type sessionStore struct {
	byOrigin map[nodeid.ID]*session
	hash     statehash.Sum
}

func newSessions() sessionStore { return sessionStore{byOrigin: map[nodeid.ID]*session{}} }

type sessionResult struct {
	sequence uint64
	results  [][]byte // never changed
	hash     uint64   // of the record
}

// find returns where the result of a group is, or would be.
func (s *session) find(sequence uint64) (place int, found bool) {
	return slices.BinarySearchFunc(s.results, sequence, func(r sessionResult, sequence uint64) int {
		return cmp.Compare(r.sequence, sequence)
	})
}

// applyGroup applies a group, unless it was applied before.
//
// Invariant: the operations of a group with an origin take effect at most once,
// wherever and however often it is in the log.
func (c *contents) applyGroup(now moment, g *raftlog.Group) raftlog.GroupResult {
	if len(g.Origin) == 0 {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: c.applyOperations(now, g.Operations)}
	}
	s := c.sessions.of(g)
	if s == nil {
		return raftlog.GroupResult{Status: raftlog.StaleSession}
	}
	if s.stale(g) {
		return raftlog.GroupResult{Status: raftlog.StaleSequence}
	}
	results := c.applyInSession(now, s, g)
	return raftlog.GroupResult{Status: raftlog.Applied, Results: results}
}

// stale reports whether a group of this session can no longer be applied or answered: it
// was acknowledged, or it is too far ahead.
func (s *session) stale(g *raftlog.Group) bool {
	acknowledged := max(s.acknowledged, g.Acknowledged)
	return g.Sequence <= acknowledged || g.Sequence-acknowledged > maxUnacknowledged
}

// applyInSession applies a group of a session, or finds its results.
func (c *contents) applyInSession(now moment, s *session, g *raftlog.Group) [][]byte {
	if place, found := s.find(g.Sequence); found {
		results := s.results[place].results
		c.sessions.acknowledge(s, g.Acknowledged)
		return results
	}
	results := c.applyOperations(now, g.Operations)
	// An operation of the group may have removed its own origin, or announced it again:
	// then its results are never requested again.
	if c.sessions.byOrigin[s.origin] == s {
		c.sessions.keep(s, g.Sequence, results)
		c.sessions.acknowledge(s, g.Acknowledged)
	}
	return results
}

// of returns the session of a group; nil if it is not open.
func (a *sessionStore) of(g *raftlog.Group) *session {
	origin, err := nodeid.FromBytes(g.Origin)
	if s := a.byOrigin[origin]; err == nil && s != nil && s.number == g.Session {
		return s
	}
	return nil
}

// keep keeps the results of a group until they are acknowledged.
func (a *sessionStore) keep(s *session, sequence uint64, results [][]byte) {
	kept := sessionResult{
		sequence: sequence, results: results,
		hash: hashGroup(s, sequence, results),
	}
	place, _ := s.find(sequence)
	s.results = slices.Insert(s.results, place, kept)
	a.hash.Add(kept.hash)
}

func (a *sessionStore) acknowledge(s *session, acknowledged uint64) {
	if acknowledged <= s.acknowledged {
		return
	}
	a.hash.Remove(hashSession(s))
	s.acknowledged = acknowledged
	a.hash.Add(hashSession(s))
	have := 0
	for have < len(s.results) && s.results[have].sequence <= acknowledged {
		a.hash.Remove(s.results[have].hash)
		have++
	}
	s.results = slices.Delete(s.results, 0, have)
}

// open opens a node's session and ends the previous session.
func (a *sessionStore) open(node nodeid.ID, number uint64) {
	a.drop(node)
	a.add(&session{origin: node, number: number})
}

func (a *sessionStore) add(s *session) {
	a.byOrigin[s.origin] = s
	a.hash.Add(hashSession(s))
}

func (a *sessionStore) drop(node nodeid.ID) {
	s := a.byOrigin[node]
	if s == nil {
		return
	}
	a.hash.Remove(hashSession(s))
	for _, r := range s.results {
		a.hash.Remove(r.hash)
	}
	delete(a.byOrigin, node)
}

// records has a record of each session without results, then a record for each group's results, so that a
// record is no larger than a group makes it. The list of results is copied, because the state changes it
// in place.
func (a *sessionStore) records() records {
	frozen := make([]session, 0, len(a.byOrigin))
	for _, s := range a.byOrigin {
		copied := *s
		copied.results = slices.Clone(s.results)
		frozen = append(frozen, copied)
	}
	slices.SortFunc(frozen, func(a, b session) int { return bytes.Compare(a.origin[:], b.origin[:]) })
	return recordsOf(frozen, func(s session) records {
		return recordsOf(append([]sessionResult{{}}, s.results...), s.record)
	})
}

// record is the record with a group's results, or without results for the zero group.
func (s session) record(r sessionResult) records {
	m := &raftlogv1.SessionRecord{Origin: s.origin[:], Session: s.number, Acknowledged: s.acknowledged}
	if r.sequence > 0 {
		m.Results = []*raftlogv1.SessionResult{{Sequence: r.sequence, Results: r.results}}
	}
	return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Session{Session: m}})
}

func (a *sessionStore) restore(m *raftlogv1.SessionRecord, members *memberStore) error {
	origin, member := members.present(m.GetOrigin())
	if member == nil {
		return corrupt("session of %x, which is not a member", m.GetOrigin())
	}
	s := a.byOrigin[origin]
	if s == nil {
		s = &session{origin: origin, number: m.GetSession(), acknowledged: m.GetAcknowledged()}
		a.add(s)
	}
	if s.number != m.GetSession() || s.acknowledged != m.GetAcknowledged() {
		return corrupt("two sessions of %x", m.GetOrigin())
	}
	for _, r := range m.GetResults() {
		_, twice := s.find(r.GetSequence())
		if twice || r.GetSequence() <= s.acknowledged || r.GetSequence()-s.acknowledged > maxUnacknowledged {
			return corrupt("result of group %d of a session acknowledged up to %d", r.GetSequence(), s.acknowledged)
		}
		a.keep(s, r.GetSequence(), r.GetResults())
	}
	return nil
}
