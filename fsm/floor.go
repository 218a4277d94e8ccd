package fsm

import (
	"fmt"

	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// floor is the lower bound for counters whose past is unknown. After a restore into another
// cluster, or a recovery, names may have been used that are not in this state: their counters begin
// above names, as if used up to it. The merge that raises the floor raises the names in the state
// to it.
//
// Invariant: no number ever falls, and incomplete stays set.
type floor struct {
	// names is the value of unknown identities and HiLo counters, from 0.
	names int64
	// epoch counts the recoveries.
	epoch uint64
	// incomplete means that there may have been unknown series and pools: a new series begins
	// suspended, and a new pool waits until windows given before have ended.
	incomplete bool
	// windows is when the last window of pools that were deleted ended, in milliseconds since 1970 UTC, or 0: new pools
	// begin there.
	windows int64
}

func (f floor) hilo() hilo.Counter { return hilo.Counter{Max: f.names, Peak: f.names} }

func (f floor) records() records {
	if f == (floor{}) {
		return these()
	}
	m := &raftlogv1.FloorRecord{Names: f.names, Epoch: f.epoch, Incomplete: f.incomplete, WindowsEndUnixMilli: f.windows}
	return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Floor{Floor: m}})
}

func (f *floor) restore(m *raftlogv1.FloorRecord) error {
	restored := floor{names: m.GetNames(), epoch: m.GetEpoch(), incomplete: m.GetIncomplete(), windows: m.GetWindowsEndUnixMilli()}
	if *f != (floor{}) || restored == (floor{}) || min(restored.names, restored.windows) < 0 {
		return corrupt("a floor of %d, or %d, in epoch %d, or two", restored.names, restored.windows, restored.epoch)
	}
	*f = restored
	return nil
}

// hashFloor is 0 without a floor, which has no record.
func hashFloor(f floor) uint64 {
	if f == (floor{}) {
		return 0
	}
	var s statehash.Space
	return s.Begin(recordFloor).Number(uint64(f.names)).Number(f.epoch).Flag(f.incomplete).Number(uint64(f.windows)).Hash()
}

// Floor returns the value of counters of unknown names, 0 in a cluster that has its whole past, and
// the number of recoveries.
func (s *State) Floor() (names int64, epoch uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents.floor.names, s.contents.floor.epoch
}

// floorBatch is the number of known names that one MergeCluster visits: some tens of milliseconds
// at most, in which nothing else is applied.
const floorBatch = 1 << 14

// The kinds of names that a floor raises, in this order: an identity that is shown again in
// between is raised with the shown ones, and a deletion raises a deleted identity.
const (
	knownHidden = iota
	knownIdentities
	knownHiLos
	knownKinds
)

// floorCursor is a position in the order of all names that a floor raises.
type floorCursor struct {
	kind int
	db   uint32
	name string
}

// String is the position as an operation and its result say it.
func (k floorCursor) String() string { return fmt.Sprintf("%d/%d/%s", k.kind, k.db, k.name) }

// parseFloorCursor parses the result of String; empty is the first position.
func parseFloorCursor(text string) (k floorCursor, err *refusal) {
	if text == "" {
		return k, nil
	}
	n, failed := fmt.Sscanf(text, "%d/%d/", &k.kind, &k.db)
	head := fmt.Sprintf("%d/%d/", k.kind, k.db)
	if failed != nil || n != 2 || k.kind < 0 || len(text) < len(head) || text[:len(head)] != head {
		return k, invalid("resume", "is not a resume position")
	}
	k.name = text[len(head):]
	return k, nil
}

// raiseCounters raises the counters of known names to a floor, from a position on: the
// floor's state may lack a name that was used there. It returns the next position, empty
// at the end.
func raiseCounters(identities *identityStore, hilos *hiloStore, to int64, from floorCursor) (resume string) {
	left := floorBatch
	identity := func(last identityValue) identityValue { return max(last, identityValue(to)) }
	for ; from.kind < knownKinds && resume == ""; from.kind, from.db, from.name = from.kind+1, 0, "" {
		switch from.kind {
		case knownHidden:
			resume = raiseFrom(&identities.hidden, from, &left, identity)
		case knownIdentities:
			resume = raiseFrom(&identities.shown, from, &left, identity)
		case knownHiLos:
			resume = raiseFrom(&hilos.counters, from, &left, func(p packedHiLo) packedHiLo { return p.raised(to) })
		}
	}
	return resume
}

// raiseFrom raises those of a table from a position on. left counts the names that may still be visited.
func raiseFrom[V comparable](t *nameTable[V], from floorCursor, left *int, raised func(V) V) (resume string) {
	var low []table.Entry[V]
	t.Ascend(from.db, from.name, func(e table.Entry[V]) bool {
		if *left--; *left < 0 {
			resume = floorCursor{from.kind, e.Database, e.Name}.String()
			return false
		}
		if raised(e.Value) != e.Value {
			low = append(low, e)
		}
		return true
	})
	for _, e := range low {
		t.put(t.find(e.Database, e.Name), raised(e.Value))
	}
	return resume
}

// raised returns the counter raised to a floor, if returns could lower it below that.
func (p packedHiLo) raised(to int64) packedHiLo {
	counter := p.counter()
	lowest := counter.Max
	if len(counter.Outstanding) > 0 {
		lowest = counter.Outstanding[0].Low - 1
	}
	if lowest >= to {
		return p
	}
	return packHiLo(raisedHiLo(counter, to, 0))
}
