package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/idnode/idnode/raftlog"
)

// Window is how far a group's number may be ahead of what its node has acknowledged.
const Window = 64

// Sessions say what the replicated state must answer to each group. The zero value has
// none.
type Sessions struct{ byNode map[string]session }

// session is one start of a node.
type session struct {
	number, acknowledged uint64
	// kept are the groups that took effect and are not acknowledged, by their number.
	kept map[uint64]kept
}

// kept is a group that took effect at a log index.
type kept struct {
	index   uint64
	results [][]byte
}

// Clone returns a copy of them.
func (s Sessions) Clone() Sessions {
	c := Sessions{maps.Clone(s.byNode)}
	for node, open := range c.byNode {
		open.kept = maps.Clone(open.kept)
		c.byNode[node] = open
	}
	return c
}

// Open begins a node's session, with the log index of its announcement as the number.
func (s *Sessions) Open(node []byte, number uint64) {
	if s.byNode == nil {
		s.byNode = map[string]session{}
	}
	s.byNode[string(node)] = session{number: number, kept: map[uint64]kept{}}
}

// Close ends the session of a node that is removed.
func (s *Sessions) Close(node []byte) { delete(s.byNode, string(node)) }

// Answer compares the state's answer to a group at a log index with what it must be. It
// reports whether the group took effect there.
func (s *Sessions) Answer(index uint64, g raftlog.Group, r raftlog.GroupResult) (effect bool, err error) {
	open, before := s.byNode[string(g.Origin)], kept{}
	want, known := raftlog.Applied, false
	switch acknowledged := max(open.acknowledged, g.Acknowledged); {
	case len(g.Origin) == 0:
	case open.number != g.Session || g.Session == 0:
		want = raftlog.StaleSession
	case g.Sequence <= acknowledged || g.Sequence-acknowledged > Window:
		want = raftlog.StaleSequence
	default:
		before, known = open.kept[g.Sequence]
	}
	switch {
	case r.Status != want:
		return false, fmt.Errorf("group %d of session %d must be answered %s, and is answered %s", g.Sequence, g.Session, want, r.Status)
	case want != raftlog.Applied:
		return false, nil
	case len(r.Results) != len(g.Operations):
		return false, fmt.Errorf("group %d of session %d has %d operations and %d results", g.Sequence, g.Session,
			len(g.Operations), len(r.Results))
	case known && !slices.EqualFunc(before.results, r.Results, bytes.Equal):
		return false, fmt.Errorf("group %d of session %d is answered otherwise than at log index %d", g.Sequence, g.Session, before.index)
	}
	if len(g.Origin) > 0 {
		s.keep(index, g, r, known)
	}
	return !known, nil
}

// keep remembers a group until it is acknowledged.
func (s *Sessions) keep(index uint64, g raftlog.Group, r raftlog.GroupResult, known bool) {
	open := s.byNode[string(g.Origin)]
	if !known {
		open.kept[g.Sequence] = kept{index, r.Results}
	}
	if g.Acknowledged > open.acknowledged {
		open.acknowledged = g.Acknowledged
		maps.DeleteFunc(open.kept, func(sequence uint64, _ kept) bool { return sequence <= g.Acknowledged })
	}
	s.byNode[string(g.Origin)] = open
}
