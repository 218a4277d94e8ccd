package fsm

import (
	"cmp"
	"slices"

	"github.com/idnode/idnode/raftlog"
)

// maxUnacknowledged is how far a group's sequence number may be ahead of what
// its origin acknowledged, and so how many results a session keeps at most.
const maxUnacknowledged = 64

// session is the record of one start of a node, so that its groups count once however
// often it sends them.
type session struct {
	// number is the log index of the announcement that opened it.
	number uint64
	// acknowledged is the sequence number up to which the node has all results.
	acknowledged uint64
	// results are those of the groups above acknowledged, by sequence number,
	// ascending.
	results []sessionResult
}

// sessionResult is the outcome of one group.
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
	origin, ok := nodeIDOf(g.Origin)
	s := c.sessions[origin]
	if !ok || s == nil || s.number != g.Session {
		return raftlog.GroupResult{Status: raftlog.StaleSession}
	}
	if s.stale(g) {
		return raftlog.GroupResult{Status: raftlog.StaleSequence}
	}
	results := c.applyInSession(now, origin, s, g)
	return raftlog.GroupResult{Status: raftlog.Applied, Results: results}
}

// stale reports whether a group of this session can no longer be applied or answered: it
// was acknowledged, or it is too far ahead.
func (s *session) stale(g *raftlog.Group) bool {
	acknowledged := max(s.acknowledged, g.Acknowledged)
	return g.Sequence <= acknowledged || g.Sequence-acknowledged > maxUnacknowledged
}

// applyInSession applies a group of a session, or finds its results.
func (c *contents) applyInSession(now moment, origin nodeID, s *session, g *raftlog.Group) [][]byte {
	if place, found := s.find(g.Sequence); found {
		results := s.results[place].results
		c.acknowledge(origin, s, g.Acknowledged)
		return results
	}
	results := c.applyOperations(now, g.Operations)
	// An operation of the group may have removed its own origin, or announced it again:
	// then its results are never requested again.
	if c.sessions[origin] == s {
		c.keepResults(origin, s, g.Sequence, results)
		c.acknowledge(origin, s, g.Acknowledged)
	}
	return results
}

// keepResults keeps the results of a group until they are acknowledged.
func (c *contents) keepResults(origin nodeID, s *session, sequence uint64, results [][]byte) {
	kept := sessionResult{
		sequence: sequence, results: results,
		hash: c.hashGroup(origin, s.number, sequence, results),
	}
	place, _ := s.find(sequence)
	s.results = slices.Insert(s.results, place, kept)
	c.stored.add(kept.hash)
}

// hashResultsAgain computes the hashes of all results, after the format has changed their
// content.
func (c *contents) hashResultsAgain() {
	for origin, s := range c.sessions {
		for i := range s.results {
			r := &s.results[i]
			c.stored.remove(r.hash)
			r.hash = c.hashGroup(origin, s.number, r.sequence, r.results)
			c.stored.add(r.hash)
		}
	}
}

// acknowledge drops results that the origin has.
func (c *contents) acknowledge(origin nodeID, s *session, acknowledged uint64) {
	if acknowledged <= s.acknowledged {
		return
	}
	c.stored.remove(hashSession(origin, s))
	s.acknowledged = acknowledged
	c.stored.add(hashSession(origin, s))
	have := 0
	for have < len(s.results) && s.results[have].sequence <= acknowledged {
		c.stored.remove(s.results[have].hash)
		have++
	}
	s.results = slices.Delete(s.results, 0, have)
}

// openSession begins a node's session and ends the one before it.
func (c *contents) openSession(node nodeID, number uint64) {
	c.dropSession(node)
	c.addSession(node, &session{number: number})
}

// addSession stores a session without results.
func (c *contents) addSession(node nodeID, s *session) {
	c.sessions[node] = s
	c.stored.add(hashSession(node, s))
}

// dropSession ends a node's session, if it has one.
func (c *contents) dropSession(node nodeID) {
	s := c.sessions[node]
	if s == nil {
		return
	}
	c.stored.remove(hashSession(node, s))
	for _, r := range s.results {
		c.stored.remove(r.hash)
	}
	delete(c.sessions, node)
}
