package fsm

import (
	"cmp"
	"maps"
	"slices"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// etagRecord is the cluster's record of one node's server-side etags. It is never changed, only
// replaced.
type etagRecord struct {
	node nodeid.ID
	// start counts the node's starts.
	start uint64
	// clean means that the node stopped cleanly and has not started since.
	clean bool
	// floor is below every etag that the node may use, in every database. It is 0 except
	// for a node that shares its tag with one of another cluster, or after a recovery.
	floor uint64
	// counters are ordered by database.
	counters []etagCounter
}

type etagCounter struct {
	database string
	// ceiling is above every etag that was reserved with the cluster's knowledge.
	ceiling uint64
	// last is the last etag that was used before the newest clean stop.
	last uint64
	// floor is below every etag that the node may use; see etagRecord.
	floor uint64
}

type etagStore struct {
	byNode map[nodeid.ID]*etagRecord
	hash   statehash.Sum
	// floors is no part of the state: it learns of records with floors, and may be nil.
	floors func(nodeID []byte, etags *raftlogv1.EtagState)
}

// of returns a node's record, empty for an unknown node.
func (s *etagStore) of(node nodeid.ID) *etagRecord {
	if e := s.byNode[node]; e != nil {
		return e
	}
	return &etagRecord{node: node}
}

func (s *etagStore) put(e *etagRecord) {
	s.drop(e.node)
	s.byNode[e.node] = e
	s.hash.Add(hashEtags(e))
}

func (s *etagStore) drop(node nodeid.ID) {
	if e := s.byNode[node]; e != nil {
		s.hash.Remove(hashEtags(e))
		delete(s.byNode, node)
	}
}

func (s *etagStore) sorted() []*etagRecord {
	return slices.SortedFunc(maps.Values(s.byNode), func(a, b *etagRecord) int { return compareNodes(a.node, b.node) })
}

// tell passes on above which values a node's etags must continue.
func (s *etagStore) tell(node nodeid.ID) {
	if e := s.byNode[node]; s.floors != nil && e.hasFloor() {
		s.floors(slices.Clone(node[:]), e.state())
	}
}

// skipAhead gives all nodes floors above every etag that they may have used, by far.
func (s *etagStore) skipAhead(by uint64) {
	for _, e := range s.sorted() {
		s.put(e.past(by))
	}
}

// restore restores a record of a snapshot: a node's first, or a further one with more
// databases. The hash follows with restored.
func (s *etagStore) restore(m *raftlogv1.EtagRecord, members *memberStore) error {
	node, member := members.present(m.GetNode())
	e := s.byNode[node]
	if member == nil || e != nil && (len(m.GetCeilings()) == 0 || m.GetStart() != e.start) {
		return corrupt("etags of %x, which is not a member, or twice", m.GetNode())
	}
	if e == nil {
		e = &etagRecord{node: node, start: m.GetStart(), clean: m.GetClean(), floor: m.GetFloor()}
		s.byNode[node] = e
	}
	for _, ceiling := range m.GetCeilings() {
		if n := len(e.counters); n > 0 && e.counters[n-1].database >= ceiling.GetDatabase() {
			return corrupt("etags of %x with %q behind %q", m.GetNode(), ceiling.GetDatabase(), e.counters[n-1].database)
		}
		e.counters = append(e.counters, etagCounter{
			database: ceiling.GetDatabase(), ceiling: ceiling.GetCeiling(), last: ceiling.GetLast(), floor: ceiling.GetFloor(),
		})
	}
	return nil
}

// restored ends the restoring of records.
func (s *etagStore) restored() {
	for _, e := range s.byNode {
		s.hash.Add(hashEtags(e))
	}
}

func (e *etagRecord) state() *raftlogv1.EtagState {
	s := &raftlogv1.EtagState{Start: e.start, Clean: e.clean, Floor: e.floor}
	for _, c := range e.counters {
		s.Databases = append(s.Databases, &raftlogv1.EtagDatabase{Database: c.database, Ceiling: c.ceiling, Last: c.last, Floor: c.floor})
	}
	return s
}

// start records that a node started. It returns the number of this start, and whether
// the node had stopped cleanly, which counts for this start only. The counters are not
// in the answer: there may be a million, and the node's own state has them.
func (s *etagStore) start(node nodeid.ID) *raftlogv1.EtagState {
	before := s.of(node)
	now := before.with(before.counters)
	now.start, now.clean = before.start+1, false
	s.put(now)
	return &raftlogv1.EtagState{Start: now.start, Clean: before.clean}
}

func (e etagRecord) with(counters []etagCounter) *etagRecord {
	e.counters = counters
	return &e
}

// etagRaise raises ceilings. None is ever lowered. Databases beyond the limit get none:
// the answer names them, and the others are raised anyway.
func (c *contents) etagRaise(dst []byte, _ moment, _ op.Operation, raise *raftlogv1.EtagRaise) ([]byte, *refusal) {
	to := make([]etagCounter, 0, len(raise.GetRaise()))
	for _, r := range raise.GetRaise() {
		to = append(to, etagCounter{database: r.GetDatabase(), ceiling: r.GetCeiling()})
	}
	node, err := c.members.node(raise.GetNode())
	if err != nil {
		return dst, err
	}
	e := c.etags.of(node)
	counters, beyond, err := mergeEtags(e.counters, to, &c.settings)
	if err != nil {
		return dst, err
	}
	c.etags.put(e.with(counters))
	return appendBeyond(dst, beyond), nil
}

// etagCleanStop records a node's last etags at the end of its present start. A late clean stop of
// an earlier start would mark etags as free that the present start has used.
//
// A clean stop of many databases has several parts. It takes effect with the last. A lost part,
// or a database beyond the limit, makes it differ from the node's disk, and then the next start
// continues above the ceilings.
func (c *contents) etagCleanStop(dst []byte, _ moment, _ op.Operation, stop *raftlogv1.EtagCleanStop) ([]byte, *refusal) {
	at := make([]etagCounter, 0, len(stop.GetLast()))
	for _, l := range stop.GetLast() {
		// A partitioned node may have passed its ceiling.
		at = append(at, etagCounter{database: l.GetDatabase(), ceiling: l.GetLast(), last: l.GetLast()})
	}
	node, err := c.members.node(stop.GetNode())
	if err != nil {
		return dst, err
	}
	e := c.etags.of(node)
	if stop.GetStart() != e.start {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "start",
			"is %d, the node is in its start %d", stop.GetStart(), e.start)
	}
	counters, beyond, err := mergeEtags(e.counters, at, &c.settings)
	if err != nil {
		return dst, err
	}
	now := e.with(counters)
	now.clean = !stop.GetPartial()
	c.etags.put(now)
	return appendBeyond(dst, beyond), nil
}

func appendBeyond(dst []byte, beyond []string) []byte {
	if len(beyond) == 0 {
		return dst
	}
	return op.AppendAnswer(dst, &raftlogv1.EtagResult{Refused: beyond})
}

// mergeEtags returns the counters with the changes, the maximum for each database, and the
// databases without room: new databases are added in their order. It sorts changes.
func mergeEtags(counters, changes []etagCounter, limits *settingStore) (merged []etagCounter, beyond []string, _ *refusal) {
	for _, change := range changes {
		if err := checkText("database", change.database, docid.MaxDatabaseBytes); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(changes, func(a, b etagCounter) int { return cmp.Compare(a.database, b.database) })
	room := limits.value(settingMaxDatabases) - int64(len(counters))
	merged = make([]etagCounter, 0, len(counters)+len(changes))
	for _, change := range combineEtags(changes) {
		n, known := slices.BinarySearchFunc(counters, change.database, func(e etagCounter, name string) int {
			return cmp.Compare(e.database, name)
		})
		merged, counters = append(merged, counters[:n]...), counters[n:]
		switch {
		case known:
			merged, counters = append(merged, counters[0].raised(change)), counters[1:]
		case room > 0:
			merged, room = append(merged, change), room-1
		default:
			beyond = append(beyond, change.database)
		}
	}
	return append(merged, counters...), beyond, nil
}

func combineEtags(sorted []etagCounter) []etagCounter {
	combined := sorted[:0]
	for _, next := range sorted {
		if n := len(combined); n > 0 && combined[n-1].database == next.database {
			combined[n-1] = combined[n-1].raised(next)
			continue
		}
		combined = append(combined, next)
	}
	return combined
}

func (e etagCounter) raised(to etagCounter) etagCounter {
	e.ceiling, e.last, e.floor = max(e.ceiling, to.ceiling), max(e.last, to.last), max(e.floor, to.floor)
	return e
}
