package fsm

import (
	"fmt"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAFloorHoldsForNamesThatAreKnown: for hidden names too, and no earlier range is issued again
// below it.
func TestAFloorHoldsForNamesThatAreKnown(t *testing.T) {
	l := newFormedLog(t)
	for _, name := range []string{"shown", "hidden"} {
		l.do(opNext(name, 1))
	}
	l.do(opDelete("hidden", false))
	l.do(opSeed("far", 5000, false, nil))
	issued := l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "orders", Token: 7})).GetHiloNext()
	l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 1000})))
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
	if _, shown := l.state.Identity("db", "hidden"); shown {
		t.Error("a hidden identity is shown")
	}
	for name, want := range map[string]int64{"shown": 1001, "hidden": 1001, "far": 5001} {
		if got := l.do(opNext(name, 1)).GetIdentityNext().GetValues()[0].GetFirst(); got != want {
			t.Errorf("%s goes on at %d, want %d", name, got, want)
		}
	}
	diff(t, false, l.giveBack("orders", issued))
	diff(t, int64(1001), l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "orders"})).GetHiloNext().GetLow())
}

// TestAFloorHoldsForNamesThatChangeMeanwhile: between two batches one identity is
// shown again, and one is deleted.
func TestAFloorHoldsForNamesThatChangeMeanwhile(t *testing.T) {
	l := newFormedLog(t)
	for from := range floorBatch/MaxMerge + 1 {
		m := &raftlogv1.Merge{}
		for i := range MaxMerge {
			m.Identities = append(m.Identities, &raftlogv1.MergeIdentity{Name: fmt.Sprint("name", from*MaxMerge+i)})
		}
		l.merge(m)
	}
	for _, name := range []string{"a", "hidden", "z"} {
		l.firsts(name, 1)
	}
	for _, name := range []string{"a", "hidden"} {
		l.mustApplied(l.do(opDelete(name, false)))
	}
	op := &raftlogv1.MergeCluster{Floor: 1000}
	op.Resume = l.mustApplied(l.do(opMergeClusterOf(op))).GetMergeCluster().GetResume()
	if op.GetResume() == "" {
		t.Fatal("one batch was enough")
	}
	l.firsts("a", 1)
	diff(t, int64(1), l.mustApplied(l.do(opDelete("z", false))).GetValue())
	for op.GetResume() != "" {
		op.Resume = l.mustApplied(l.do(opMergeClusterOf(op))).GetMergeCluster().GetResume()
	}
	for _, name := range []string{"a", "hidden", "z"} {
		if got := l.firsts(name, 1); got[0] <= 1000 {
			t.Errorf("%s goes on at %d", name, got[0])
		}
	}
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
}

// TestAFloorIsRaisedInBatches: one entry does not hold up the others, however many
// names there are.
func TestAFloorIsRaisedInBatches(t *testing.T) {
	l := newFormedLog(t)
	const names = floorBatch + 10
	for _, kind := range []func(m *raftlogv1.Merge, name string){
		func(m *raftlogv1.Merge, name string) {
			m.Identities = append(m.Identities, &raftlogv1.MergeIdentity{Name: name})
		},
		func(m *raftlogv1.Merge, name string) {
			m.Hilos = append(m.Hilos, &raftlogv1.MergeHiLo{Tag: name})
		},
	} {
		for from := 0; from < names; from += MaxMerge {
			m := &raftlogv1.Merge{}
			for i := from; i < min(from+MaxMerge, names); i++ {
				kind(m, fmt.Sprintf("%d/ü/%d", i, i))
			}
			l.merge(m)
		}
	}
	merge, calls := &raftlogv1.MergeCluster{Floor: 77}, 0
	for {
		merge.Resume = l.mustApplied(l.do(opMergeClusterOf(merge))).GetMergeCluster().GetResume()
		if calls++; merge.GetResume() == "" {
			break
		}
	}
	diff(t, 3, calls)
	raised := func(name string, value int64) {
		if value != 77 {
			t.Fatalf("%s is at %d", name, value)
		}
	}
	for _, i := range l.state.Identities("db", "", "", MaxPage) {
		raised(i.Name, i.Last)
	}
	for _, h := range l.state.HiLos("db", "", "", MaxPage) {
		raised(h.Tag, h.Max)
	}
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
	for _, bad := range []string{"x", "1", "1/2", "-1/0/a", "01/0/a", "1/-2/a", "1/2 /a"} {
		l.mustRefuse(bad, opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 1, Resume: bad}))
	}
	l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 99, Resume: "7/0/a"}))) // Behind all.
}
