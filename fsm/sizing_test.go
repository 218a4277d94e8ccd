package fsm

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/test/sizing"
	"github.com/idnode/idnode/test/tier"
)

// sized is something that the state keeps, as docs/evidence/sizing.md counts it.
type sized struct {
	// prepare, if set, returns the operation to apply first, before n are added.
	prepare func(n int) []byte
	// times is how many operations there are for each.
	times int
	// op returns the i-th operation, on names that n of them share.
	op func(i, n int) []byte
}

// manyRanges is how many ranges of a tag are kept.
const manyRanges = 4

// sizes has a sized for each row of the page.
var sizes = map[string]sized{
	"identity": {times: 1, op: func(i, n int) []byte { return encodeOperation(opNext(shuffledName(i, n), 1)) }},
	"identity, name of 100 bytes": {times: 1, op: func(i, n int) []byte {
		return encodeOperation(opNext(fmt.Sprintf("%0100s", shuffledName(i, n)), 1))
	}},
	"claim": {times: 1, op: func(i, n int) []byte { return encodeOperation(opClaimID(shuffledName(i, n))) }},
	"HiLo tag, one range": {times: 1, op: func(i, n int) []byte {
		return encodeOperation(opHiLo(sizedRange(i, n, "")))
	}},
	"HiLo tag, four ranges": {times: manyRanges, op: func(i, n int) []byte {
		return encodeOperation(opHiLo(sizedRange(i, n, "")))
	}},
	"HiLo tag, four ranges of other callers": {times: manyRanges, op: func(i, n int) []byte {
		return encodeOperation(opHiLo(sizedRange(i, n, fmt.Sprintf("till-%d books", i/n))))
	}},
	"series key": {
		prepare: func(int) []byte {
			return onSeries(&raftlogv1.SeriesDefine{Name: "invoices", Definition: series.DefinitionMessage(series.Definition{Format: "{number}"})})
		},
		times: 1,
		op: func(i, n int) []byte {
			return onSeries(&raftlogv1.SeriesTake{Name: "invoices", Keys: []string{shuffledName(i, n)}})
		},
	},
	"series scope, one key": {
		prepare: func(int) []byte {
			return onSeries(&raftlogv1.SeriesDefine{
				Name:       "invoices",
				Definition: series.DefinitionMessage(series.Definition{Format: "{branch}-{number}"}),
			})
		},
		times: 1,
		op: func(i, n int) []byte {
			name := shuffledName(i, n)
			return onSeries(&raftlogv1.SeriesTake{Name: "invoices", Keys: []string{name}, Values: []string{name[len(name)-7:]}})
		},
	},
	// The window is full, and two thirds of what came are forgotten.
	"request id": {prepare: fullWindow, times: 3, op: func(i, _ int) []byte { return sizedRequest(i, "") }},
	"request id, each of another caller": {prepare: fullWindow, times: 3, op: func(i, n int) []byte {
		return sizedRequest(i, "dns:"+shuffledName(i, n))
	}},
}

// sizedRequest is a call with a request id, of a caller without a name or another one.
func sizedRequest(i int, principal string) []byte {
	k := key(i, 0x9e3779b97f4a7c15)
	o := keyed(opNext("collections/0000000", 1), k)
	o.Principal = &principal
	return encodeOperation(o)
}

// fullWindow has n request ids remembered.
func fullWindow(n int) []byte {
	return encodePayload(&raftlogv1.SettingSet{Key: "request-window", Value: int64(max(n, 1))})
}

func sizedRange(i, n int, label string) *raftlogv1.HiLoNext {
	return &raftlogv1.HiLoNext{Tag: shuffledName(i%n, n), Token: uint64(i+1) * 0x9e3779b97f4a7c15, ServerTag: "A", Label: label}
}

// twoSizes are how many of each the tests make.
func twoSizes() []int {
	if tier.All() {
		return []int{100_000, 400_000}
	}
	return []int{5_000, 20_000}
}

// sizedLog returns a log whose state has n of the kind, and the heap that they take.
func sizedLog(t testing.TB, kind sized, n int) (l *testLog, heapBytes uint64) {
	t.Helper()
	l = newFormedLog(t)
	if kind.prepare != nil {
		l.mustApplied(l.raw(kind.prepare(n)))
	}
	before := heapInUse()
	l.fillEncoded(kind.times*n, func(i int) []byte { return kind.op(i, n) })
	return l, heapInUse() - before
}

// TestSizes compares the page with the memory and the snapshot that n of a kind take.
func TestSizes(t *testing.T) {
	page := sizing.Read(t, "one of these")
	if known := slices.Sorted(maps.Keys(sizes)); !slices.Equal(page.Rows(), known) {
		t.Fatalf("docs/evidence/sizing.md has %q, the test %q", page.Rows(), known)
	}
	for _, row := range page.Rows() {
		for _, n := range twoSizes() {
			t.Run(fmt.Sprintf("%s/%d", row, n), func(t *testing.T) {
				empty, _ := sizedLog(t, sizes[row], 0)
				l, heapBytes := sizedLog(t, sizes[row], n)
				page.Check(t, row, "heap", float64(heapBytes)/float64(n))
				snapshot := len(snapshotOf(t, l.state)) - len(snapshotOf(t, empty.state))
				page.Check(t, row, "snapshot", float64(snapshot)/float64(n))
				page.Check(t, row, "heap", float64(restoredHeap(t, l))/float64(n))
			})
		}
	}
}

// restoredHeap returns the bytes of the heap that a state takes after a restart.
func restoredHeap(t testing.TB, l *testLog) uint64 {
	t.Helper()
	data := snapshotOf(t, l.state)
	before := heapInUse()
	s := restored(t, data)
	after := heapInUse()
	runtime.KeepAlive(s)
	runtime.KeepAlive(data)
	runtime.KeepAlive(l)
	return after - before
}

// TestLogBytes compares the page with the bytes of an operation in the log entries that a
// leader makes of one and of 512.
func TestLogBytes(t *testing.T) {
	page := sizing.Read(t, "one of these")
	for _, row := range page.Rows() {
		for column, n := range map[string]int{"entry of one": 1, "entry of 512": 512} {
			page.Check(t, row, column, entryBytes(t, sizes[row], n))
		}
	}
}

// entryBytes returns the bytes of each of n operations in an entry with all of them.
func entryBytes(t *testing.T, kind sized, n int) float64 {
	t.Helper()
	// A session and a number of groups as in a cluster that has run for months.
	g := raftlog.Group{Origin: nodeNamed("A"), Session: 1 << 30, Sequence: 1 << 30, Acknowledged: 1<<30 - 1}
	for i := range n {
		g.Operations = append(g.Operations, kind.op(i, 1<<20))
	}
	return float64(len(newLog(t).encode(g))) / float64(n)
}

// timesTried is how often a time is measured; the least counts.
const timesTried = 5

// mostGrowth is how many times as long a name may take among four times as many. The
// caches of a processor explain a factor of two.
const mostGrowth = 6

// TestSnapshotAndRestoreTakeTimeByTheName: neither time grows faster than the names do.
func TestSnapshotAndRestoreTakeTimeByTheName(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sizes := twoSizes()
	var write, restore [2]time.Duration
	for i, n := range sizes {
		l := newFormedLog(t)
		l.fill(n, func(i int) *raftlogv1.Operation { return opNext(shuffledName(i, n), 1) })
		var data []byte
		write[i] = perName(n, func() { data = snapshotOf(t, l.state) })
		restore[i] = perName(n, func() { restored(t, data) })
	}
	t.Logf("processor time by the name, %d: write %v, restore %v", sizes, write, restore)
	if write[1] > mostGrowth*write[0] || restore[1] > mostGrowth*restore[0] {
		t.Error("it grows faster than the names")
	}
}

// perName returns the processor time that f takes for each of n, on a locked thread.
func perName(n int, f func()) time.Duration {
	least := measure(f).cpu
	for range timesTried - 1 {
		least = min(least, measure(f).cpu)
	}
	return least / time.Duration(n)
}
