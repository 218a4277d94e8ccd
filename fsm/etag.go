package fsm

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// etagStore has the cluster's record of each node's server-side etags, with the ceilings by database.
type etagStore struct {
	byNode map[nodeid.ID]*nodeEtags
	hash   statehash.Sum
	// floors is no part of the state: it learns of records with floors, and may be nil.
	floors func(*raftlogv1.EtagRecord)
}

// nodeEtags is the cluster's record of a node's etags.
//
// The floor of a node, as that of a ceiling, is 0 except for a node that shares its tag with a node
// of another cluster, or after a recovery.
type nodeEtags struct {
	// head is the record without ceilings. It is never changed, only replaced.
	head *raftlogv1.EtagRecord
	// ceilings are by database. A ceiling is never changed, only replaced.
	ceilings *btree.Map[string, *raftlogv1.EtagCeiling]
	// hash is that of the ceilings, and counted the node's part in the store's hash.
	hash, counted statehash.Sum
}

func newNodeEtags(head *raftlogv1.EtagRecord) *nodeEtags {
	return &nodeEtags{head: head, ceilings: &btree.Map[string, *raftlogv1.EtagCeiling]{}}
}

// copy returns a copy, which shares memory with the original until either changes.
func (e *nodeEtags) copy() *nodeEtags {
	c := *e
	c.ceilings = e.ceilings.Copy()
	return &c
}

// put stores the ceiling of a database.
func (e *nodeEtags) put(c *raftlogv1.EtagCeiling) {
	if before, known := e.ceilings.Set(c.GetDatabase(), c); known {
		e.hash.Remove(hashCeiling(e.head.GetNode(), before))
	}
	e.hash.Add(hashCeiling(e.head.GetNode(), c))
}

// of returns a node's record, an empty one for an unknown node.
func (s *etagStore) of(node nodeid.ID) *nodeEtags {
	if e := s.byNode[node]; e != nil {
		return e
	}
	return newNodeEtags(&raftlogv1.EtagRecord{Node: node[:]})
}

// put stores a node's record, or updates its part in the hash.
func (s *etagStore) put(e *nodeEtags) {
	s.drop(nodeid.ID(e.head.GetNode()))
	s.byNode[nodeid.ID(e.head.GetNode())] = e
	e.counted = e.hash
	e.counted.Add(hashEtags(e.head))
	s.hash += e.counted
}

func (s *etagStore) drop(node nodeid.ID) {
	if e := s.byNode[node]; e != nil {
		s.hash -= e.counted
		delete(s.byNode, node)
	}
}

// sorted returns all nodes' in the order of their ids.
func (s *etagStore) sorted() []*nodeEtags {
	return slices.SortedFunc(maps.Values(s.byNode), func(a, b *nodeEtags) int { return bytes.Compare(a.head.GetNode(), b.head.GetNode()) })
}

// tell passes on above which values a node's etags must continue.
func (s *etagStore) tell(head *raftlogv1.EtagRecord, ceilings []*raftlogv1.EtagCeiling) {
	ceilings = slices.DeleteFunc(slices.Clone(ceilings), func(c *raftlogv1.EtagCeiling) bool { return c.GetFloor() == 0 })
	if s.floors != nil && (head.GetFloor() > 0 || len(ceilings) > 0) {
		s.floors(withCeilings(head, ceilings))
	}
}

// tellAll does so for all nodes, with all their ceilings.
func (s *etagStore) tellAll() {
	for _, e := range s.byNode {
		s.tell(e.head, e.ceilings.Values())
	}
}

// skipAhead raises all nodes' floors far above every etag that they may have used.
func (s *etagStore) skipAhead(by uint64) {
	for _, e := range s.sorted() {
		for _, c := range e.ceilings.Values() {
			e.put(raisedEtags(c, &raftlogv1.EtagCeiling{Floor: max(c.GetFloor(), c.GetCeiling(), c.GetLast()) + by}))
		}
		s.put(e)
	}
}

// etagsInRecord is how many databases a record of etags has at most: with the longest
// names it is as long as the largest records of other kinds.
const etagsInRecord = 256

// records has a record of each node, and further records for databases that do not fit.
func (s *etagStore) records() records {
	all := s.sorted()
	for i, e := range all {
		all[i] = e.copy()
	}
	return recordsOf(all, func(e *nodeEtags) records {
		parts := slices.Collect(slices.Chunk(e.ceilings.Values(), etagsInRecord))
		if len(parts) == 0 {
			parts = [][]*raftlogv1.EtagCeiling{nil}
		}
		return recordsOf(parts, func(part []*raftlogv1.EtagCeiling) records {
			return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Etag{Etag: withCeilings(e.head, part)}})
		})
	})
}

// restore restores a record of a snapshot: a node's first record, or a further record with more
// databases.
func (s *etagStore) restore(m *raftlogv1.EtagRecord, members *memberStore) error {
	node, member := members.present(m.GetNode())
	e := s.byNode[node]
	if member == nil || e != nil && (len(m.GetCeilings()) == 0 || m.GetStart() != e.head.GetStart()) {
		return corrupt("etags of %x, which is not a member, or twice", m.GetNode())
	}
	if e == nil {
		e = newNodeEtags(withCeilings(m, nil))
	}
	for _, ceiling := range m.GetCeilings() {
		if last, _, some := e.ceilings.Max(); some && last >= ceiling.GetDatabase() {
			return corrupt("etags of %x with %q behind %q", m.GetNode(), ceiling.GetDatabase(), last)
		}
		e.put(ceiling)
	}
	s.put(e)
	return nil
}

// start records that a node started. It returns the number of this start, and whether
// the node had stopped cleanly, which counts for this start only. The ceilings are not
// in the answer: there may be a million, and the node's own state has them.
func (s *etagStore) start(node nodeid.ID) *raftlogv1.EtagRecord {
	e := s.of(node)
	before := e.head
	e.head = withCeilings(before, nil)
	e.head.Start, e.head.Clean = before.GetStart()+1, false
	s.put(e)
	return &raftlogv1.EtagRecord{Start: e.head.GetStart(), Clean: before.GetClean()}
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
	beyond, err := e.raise(raise.GetRaise(), &c.settings)
	if err != nil {
		return dst, err
	}
	c.etags.put(e)
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
	if stop.GetStart() != e.head.GetStart() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "start",
			"is %d, the node is in its start %d", stop.GetStart(), e.head.GetStart())
	}
	beyond, err := e.raise(stop.GetLast(), &c.settings)
	if err != nil {
		return dst, err
	}
	e.head = withCeilings(e.head, nil)
	e.head.Clean = !stop.GetPartial()
	c.etags.put(e)
	return appendBeyond(dst, beyond), nil
}

func appendBeyond(dst []byte, beyond []string) []byte {
	if len(beyond) == 0 {
		return dst
	}
	return op.AppendAnswer(dst, &raftlogv1.EtagResult{Refused: beyond})
}

// raise takes changes in, the maximum for each database, or none of them. It returns the databases
// without room: new databases are added in their order. It sorts changes.
func (e *nodeEtags) raise(changes []*raftlogv1.EtagCeiling, limits *settingStore) (beyond []string, _ *refusal) {
	for _, change := range changes {
		if err := checkText("database", change.GetDatabase(), docid.MaxDatabaseBytes); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(changes, func(a, b *raftlogv1.EtagCeiling) int { return cmp.Compare(a.GetDatabase(), b.GetDatabase()) })
	room := limits.value(settingMaxDatabases) - int64(e.ceilings.Len())
	for _, change := range changes {
		before, known := e.ceilings.Get(change.GetDatabase())
		switch {
		case known:
			e.put(raisedEtags(before, change))
		case room > 0:
			e.put(raisedEtags(change, nil))
			room--
		case len(beyond) == 0 || beyond[len(beyond)-1] != change.GetDatabase():
			beyond = append(beyond, change.GetDatabase())
		}
	}
	return beyond, nil
}

// raisedEtags returns the maximum of both, to which no unknown field of an operation belongs.
func raisedEtags(c, to *raftlogv1.EtagCeiling) *raftlogv1.EtagCeiling {
	return &raftlogv1.EtagCeiling{
		Database: c.GetDatabase(), Ceiling: max(c.GetCeiling(), to.GetCeiling()),
		Last: max(c.GetLast(), to.GetLast()), Floor: max(c.GetFloor(), to.GetFloor()),
	}
}
