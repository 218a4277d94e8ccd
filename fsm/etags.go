package fsm

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// etagStore has the cluster's record of each node's server-side etags, with the ceilings by database.
// Records and ceilings are never changed, only replaced.
//
// The floor of a record, as that of a ceiling, is 0 except for a node that shares its tag with one of
// another cluster, or after a recovery.
type etagStore struct {
	byNode map[nodeid.ID]*raftlogv1.EtagRecord
	hash   statehash.Sum
	// floors is no part of the state: it learns of records with floors, and may be nil.
	floors func(*raftlogv1.EtagRecord)
}

// of returns a node's record, empty for an unknown node.
func (s *etagStore) of(node nodeid.ID) *raftlogv1.EtagRecord {
	if e := s.byNode[node]; e != nil {
		return e
	}
	return &raftlogv1.EtagRecord{Node: node[:]}
}

func (s *etagStore) put(e *raftlogv1.EtagRecord) {
	node := nodeid.ID(e.GetNode())
	s.drop(node)
	s.byNode[node] = e
	s.hash.Add(hashEtags(e))
}

func (s *etagStore) drop(node nodeid.ID) {
	if e := s.byNode[node]; e != nil {
		s.hash.Remove(hashEtags(e))
		delete(s.byNode, node)
	}
}

func (s *etagStore) sorted() []*raftlogv1.EtagRecord {
	return slices.SortedFunc(maps.Values(s.byNode), func(a, b *raftlogv1.EtagRecord) int { return bytes.Compare(a.GetNode(), b.GetNode()) })
}

// tell passes on above which values a node's etags must continue.
func (s *etagStore) tell(node nodeid.ID) {
	if e := s.byNode[node]; s.floors != nil && hasFloor(e) {
		s.floors(e)
	}
}

// hasFloor reports whether the etags must go on above something.
func hasFloor(e *raftlogv1.EtagRecord) bool {
	return e.GetFloor() > 0 || slices.ContainsFunc(e.GetCeilings(), func(c *raftlogv1.EtagCeiling) bool { return c.GetFloor() > 0 })
}

// skipAhead gives all nodes floors above every etag that they may have used, by far.
func (s *etagStore) skipAhead(by uint64) {
	for _, e := range s.sorted() {
		past := make([]*raftlogv1.EtagCeiling, len(e.GetCeilings()))
		for i, c := range e.GetCeilings() {
			past[i] = raisedEtags(c, &raftlogv1.EtagCeiling{Floor: max(c.GetFloor(), c.GetCeiling(), c.GetLast()) + by})
		}
		s.put(withCeilings(e, past))
	}
}

// etagsInRecord is how many databases a record of etags has at most: with the longest
// names it is as long as the largest records of other kinds.
const etagsInRecord = 256

// records are one of each node, and further ones for databases that do not fit.
func (s *etagStore) records() records {
	return recordsOf(s.sorted(), func(e *raftlogv1.EtagRecord) records {
		parts := slices.Collect(slices.Chunk(e.GetCeilings(), etagsInRecord))
		if len(parts) == 0 {
			parts = [][]*raftlogv1.EtagCeiling{nil}
		}
		return recordsOf(parts, func(part []*raftlogv1.EtagCeiling) records {
			return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Etag{Etag: withCeilings(e, part)}})
		})
	})
}

// restore restores a record of a snapshot: a node's first, or a further one with more
// databases. The hash follows with restored.
func (s *etagStore) restore(m *raftlogv1.EtagRecord, members *memberStore) error {
	node, member := members.present(m.GetNode())
	e := s.byNode[node]
	if member == nil || e != nil && (len(m.GetCeilings()) == 0 || m.GetStart() != e.GetStart()) {
		return corrupt("etags of %x, which is not a member, or twice", m.GetNode())
	}
	if e == nil {
		e = withCeilings(m, nil)
		s.byNode[node] = e
	}
	for _, ceiling := range m.GetCeilings() {
		if n := len(e.Ceilings); n > 0 && e.Ceilings[n-1].GetDatabase() >= ceiling.GetDatabase() {
			return corrupt("etags of %x with %q behind %q", m.GetNode(), ceiling.GetDatabase(), e.Ceilings[n-1].GetDatabase())
		}
		e.Ceilings = append(e.Ceilings, ceiling)
	}
	return nil
}

// restored ends the restoring of records.
func (s *etagStore) restored() {
	for _, e := range s.byNode {
		s.hash.Add(hashEtags(e))
	}
}

// start records that a node started. It returns the number of this start, and whether
// the node had stopped cleanly, which counts for this start only. The ceilings are not
// in the answer: there may be a million, and the node's own state has them.
func (s *etagStore) start(node nodeid.ID) *raftlogv1.EtagRecord {
	before := s.of(node)
	now := withCeilings(before, before.GetCeilings())
	now.Start, now.Clean = before.GetStart()+1, false
	s.put(now)
	return &raftlogv1.EtagRecord{Start: now.GetStart(), Clean: before.GetClean()}
}

// withCeilings returns a copy of a record with other ceilings.
func withCeilings(e *raftlogv1.EtagRecord, ceilings []*raftlogv1.EtagCeiling) *raftlogv1.EtagRecord {
	return &raftlogv1.EtagRecord{Node: e.GetNode(), Start: e.GetStart(), Clean: e.GetClean(), Floor: e.GetFloor(), Ceilings: ceilings}
}

// etagRaise raises ceilings. None is ever lowered. Databases beyond the limit get none:
// the answer names them, and the others are raised anyway.
func (c *contents) etagRaise(dst []byte, _ moment, _ op.Operation, raise *raftlogv1.EtagRaise) ([]byte, *refusal) {
	node, err := c.members.node(raise.GetNode())
	if err != nil {
		return dst, err
	}
	e := c.etags.of(node)
	ceilings, beyond, err := mergeEtags(e.GetCeilings(), raise.GetRaise(), &c.settings)
	if err != nil {
		return dst, err
	}
	c.etags.put(withCeilings(e, ceilings))
	return appendBeyond(dst, beyond), nil
}

// etagCleanStop records a node's last etags at the end of its present start. A late clean stop of
// an earlier start would mark etags as free that the present start has used.
//
// A clean stop of many databases has several parts. It takes effect with the last. A lost part,
// or a database beyond the limit, makes it differ from the node's disk, and then the next start
// continues above the ceilings.
func (c *contents) etagCleanStop(dst []byte, _ moment, _ op.Operation, stop *raftlogv1.EtagCleanStop) ([]byte, *refusal) {
	for _, l := range stop.GetLast() {
		l.Ceiling = max(l.GetCeiling(), l.GetLast()) // A partitioned node may have passed its ceiling.
	}
	node, err := c.members.node(stop.GetNode())
	if err != nil {
		return dst, err
	}
	e := c.etags.of(node)
	if stop.GetStart() != e.GetStart() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "start",
			"is %d, the node is in its start %d", stop.GetStart(), e.GetStart())
	}
	ceilings, beyond, err := mergeEtags(e.GetCeilings(), stop.GetLast(), &c.settings)
	if err != nil {
		return dst, err
	}
	now := withCeilings(e, ceilings)
	now.Clean = !stop.GetPartial()
	c.etags.put(now)
	return appendBeyond(dst, beyond), nil
}

func appendBeyond(dst []byte, beyond []string) []byte {
	if len(beyond) == 0 {
		return dst
	}
	return op.AppendAnswer(dst, &raftlogv1.EtagResult{Refused: beyond})
}

// mergeEtags returns the ceilings with the changes, the maximum for each database, and the
// databases without room: new databases are added in their order. It sorts changes.
func mergeEtags(
	ceilings, changes []*raftlogv1.EtagCeiling, limits *settingStore,
) (merged []*raftlogv1.EtagCeiling, beyond []string, _ *refusal) {
	for _, change := range changes {
		if err := checkText("database", change.GetDatabase(), docid.MaxDatabaseBytes); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(changes, func(a, b *raftlogv1.EtagCeiling) int { return cmp.Compare(a.GetDatabase(), b.GetDatabase()) })
	room := limits.value(settingMaxDatabases) - int64(len(ceilings))
	merged = make([]*raftlogv1.EtagCeiling, 0, len(ceilings)+len(changes))
	for _, change := range changes {
		n, known := slices.BinarySearchFunc(ceilings, change.GetDatabase(), func(c *raftlogv1.EtagCeiling, name string) int {
			return cmp.Compare(c.GetDatabase(), name)
		})
		merged, ceilings = append(merged, ceilings[:n]...), ceilings[n:]
		last := len(merged) - 1
		switch {
		case last >= 0 && merged[last].GetDatabase() == change.GetDatabase(): // It is twice among the changes.
			merged[last] = raisedEtags(merged[last], change)
		case known:
			merged, ceilings = append(merged, raisedEtags(ceilings[0], change)), ceilings[1:]
		case room > 0:
			merged, room = append(merged, raisedEtags(change, nil)), room-1
		case len(beyond) == 0 || beyond[len(beyond)-1] != change.GetDatabase():
			beyond = append(beyond, change.GetDatabase())
		}
	}
	return append(merged, ceilings...), beyond, nil
}

// raisedEtags returns the maximum of both, to which no unknown field of an operation belongs.
func raisedEtags(c, to *raftlogv1.EtagCeiling) *raftlogv1.EtagCeiling {
	return &raftlogv1.EtagCeiling{
		Database: c.GetDatabase(), Ceiling: max(c.GetCeiling(), to.GetCeiling()),
		Last: max(c.GetLast(), to.GetLast()), Floor: max(c.GetFloor(), to.GetFloor()),
	}
}
