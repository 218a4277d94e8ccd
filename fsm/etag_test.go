package fsm

import (
	"fmt"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestARaiseTakesWhatFits: the answer lists databases beyond the limit; the others are raised.
func TestARaiseTakesWhatFits(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("max-databases", 2)))
	l.mustApplied(l.do(opRaiseEtags("A", map[string]uint64{"m": 10})))
	got := l.do(opRaiseEtags("A", map[string]uint64{"z": 9, "m": 20, "a": 7, "b": 8}))
	diff(t, []string{"b", "z"}, l.mustApplied(got).GetEtag().GetRefused())
	diff(t, map[string]uint64{"a": 7, "m": 20}, l.ceilings("A"))
	// Existing databases are raised also where the limit was lowered since.
	l.mustApplied(l.do(opSet("max-databases", 1)))
	if got := l.mustApplied(l.do(opRaiseEtags("A", map[string]uint64{"m": 30}))); got.GetEtag() != nil {
		t.Errorf("a raise that fits: %v", got)
	}
	diff(t, uint64(30), l.ceilings("A")["m"])
	// A name that no state holds fails the operation as a whole.
	l.mustRefuse("no name", opRaiseEtags("A", map[string]uint64{"m": 40, "": 1}))
}

// ceilings are those of a node.
func (l *testLog) ceilings(tag string) map[string]uint64 {
	all := map[string]uint64{}
	for _, d := range l.state.Etags(nodeNamed("node " + tag)).GetCeilings() {
		all[d.GetDatabase()] = d.GetCeiling()
	}
	return all
}

func opPartialStop(node string, start uint64, last map[string]uint64) *raftlogv1.Operation {
	op := opCleanStop(node, start, last)
	op.GetEtagCleanStop().Partial = true
	return op
}

// TestACleanStopComesInParts, and counts only once the last part arrived.
func TestACleanStopComesInParts(t *testing.T) {
	l := newFormedLog(t)
	l.announce("A")
	l.mustApplied(l.do(opRaiseEtags("A", map[string]uint64{"a": 100, "b": 100, "c": 100})))
	l.mustApplied(l.do(opPartialStop("A", 1, map[string]uint64{"a": 1, "b": 2})))
	l.mustApplied(l.do(opPartialStop("A", 1, map[string]uint64{"b": 2, "c": 3}))) // Repeated in part.
	l.state = restored(t, snapshotOf(t, l.state))
	if l.state.Etags(nodeNamed("node A")).GetClean() {
		t.Fatal("a stop counts before its last part")
	}
	l.mustApplied(l.do(opCleanStop("A", 1, map[string]uint64{"d": 4})))
	want := &raftlogv1.EtagRecord{Node: nodeNamed("node A"), Start: 1, Clean: true, Ceilings: []*raftlogv1.EtagCeiling{
		{Database: "a", Ceiling: 100, Last: 1},
		{Database: "b", Ceiling: 100, Last: 2},
		{Database: "c", Ceiling: 100, Last: 3},
		{Database: "d", Ceiling: 4, Last: 4},
	}}
	diff(t, want, l.state.Etags(nodeNamed("node A")))
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
	l.announce("A")
	l.mustApplied(l.do(opPartialStop("A", 2, map[string]uint64{"a": 50})))
	l.announce("A")
	if l.state.Etags(nodeNamed("node A")).GetClean() {
		t.Error("a stop that was not complete counts after the next start")
	}
}

// TestAStartIsAnsweredShortly, however many databases the node has, and leaves little in the
// window of request ids: the databases are in the node's own state.
func TestAStartIsAnsweredShortly(t *testing.T) {
	l := newFormedLog(t)
	last := map[string]uint64{}
	for i := range 1000 {
		last[fmt.Sprintf("database-%0100d", i)] = uint64(i)
	}
	l.mustApplied(l.do(opSet("max-databases", 1_000_000)))
	l.announce("A")
	l.mustApplied(l.do(opCleanStop("A", 1, last)))
	announcement := keyedAnnouncement(testMember("A"), [16]byte{1})
	for range 2 { // The second time it is a copy.
		said := l.mustApplied(l.raw(announcement)).GetMember().GetEtags()
		if said.GetStart() != 2 || !said.GetClean() || len(said.GetCeilings()) > 0 {
			t.Errorf("%v", said)
		}
	}
	s, _ := l.state.contents.requests.shares.Get(0, "")
	_, e := s.at(s.next - 1)
	if e.bytes > 1000 {
		t.Errorf("%d bytes are remembered of a start", e.bytes)
	}
	known := l.state.Etags(nodeNamed("node A"))
	if known.GetClean() || len(known.GetCeilings()) != len(last) {
		t.Errorf("%d databases are known, clean: %t", len(known.GetCeilings()), known.GetClean())
	}
	for _, d := range known.GetCeilings() {
		if d.GetLast() != last[d.GetDatabase()] {
			t.Errorf("%v, want %d", d, last[d.GetDatabase()])
		}
	}
}

// TestManyDatabasesAreRestored: a node's etags are more than one record, and the hash is that
// of all of them.
func TestManyDatabasesAreRestored(t *testing.T) {
	l := newFormedLog(t)
	raise := map[string]uint64{}
	for i := range 2*etagsInRecord + 1 {
		raise[fmt.Sprintf("db%d", i)] = uint64(i)
	}
	l.mustApplied(l.do(opRaiseEtags("A", raise)))
	again := restored(t, snapshotOf(t, l.state))
	diff(t, l.state.Etags(nodeNamed("node A")), again.Etags(nodeNamed("node A")))
	diff(t, snapshotOf(t, l.state), snapshotOf(t, again))
}
