package fsm

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/cputime"
	"github.com/idnode/idnode/test/sizing"
	"github.com/idnode/idnode/test/tier"
)

// Bounds on a state of a million names; those on its memory are in docs/evidence/sizing.md. Times are processor time of the thread,
// so that a busy machine breaks no test; what the clock on the wall said is
// printed beside it.
const (
	maxSnapshotHold = 10 * time.Millisecond
	maxRestore      = 5 * time.Second
)

// million is how many names the tests make.
func million() int {
	if testing.Short() {
		return 100_000
	}
	return 1_000_000
}

// heapInUse returns the bytes in use.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// shuffledName is the i-th name of n in an order without order, so that trees
// fill as they would in service.
func shuffledName(i, n int) string { return benchName(i * 617_587 % n) }

// fill applies n operations in groups of a thousand.
func (l *testLog) fill(n int, op func(i int) *raftlogv1.Operation) {
	l.t.Helper()
	l.fillEncoded(n, func(i int) []byte { return encodeOperation(op(i)) })
}

// fillEncoded is fill with operations that are encoded.
func (l *testLog) fillEncoded(n int, op func(i int) []byte) {
	l.t.Helper()
	for i := 0; i < n; {
		var g raftlog.Group
		for ; i < n && len(g.Operations) < 1000; i++ {
			g.Operations = append(g.Operations, op(i))
		}
		l.index++
		if _, err := l.state.Apply(l.index, l.encode(g)); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestAMillionNames(t *testing.T) {
	tier.Long(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := million()
	l := newFormedLog(t)
	few := l.measureCost(1)
	before := heapInUse()
	l.fill(n, func(i int) *raftlogv1.Operation { return opNext(shuffledName(i, n), 1) })
	l.fill(n, func(i int) *raftlogv1.Operation {
		return opHiLo(&raftlogv1.HiLoNext{Tag: shuffledName(i, n), Token: uint64(i) * 0x9e3779b97f4a7c15, ServerTag: "A"})
	})
	perName := float64(heapInUse()-before) / float64(2*n)
	t.Logf("%d identities and %d HiLo tags: %.0f bytes of heap for each", n, n, perName)
	page := sizing.Read(t, "one of these")
	if most := (page["identity"]["heap"] + page["HiLo tag, one range"]["heap"]) / 2; perName > most {
		t.Errorf("more than the %.0f of docs/evidence/sizing.md", most)
	}
	t.Logf("processor time per identity in the state: %v with one name, %v with %d", few, l.measureCost(n), n)
	l.fill(n/2, func(i int) *raftlogv1.Operation { return keyed(opNext(shuffledName(i, n), 1), key(i, 1)) })
	data := l.measureSnapshot(n)
	l.measureRestore(data)
}

// measureCost is the processor time of one identity, of n names, in groups of 512.
// It is a small part of what an identity costs a cluster, and rises as every
// search in memory does: what must stay flat is the sum, which the tests with
// real processes check.
func (l *testLog) measureCost(n int) time.Duration {
	l.t.Helper()
	const groups, size = 200, 512
	entries := make([][]byte, groups)
	for i := range entries {
		var g raftlog.Group
		for j := range size {
			g.Operations = append(g.Operations, encodeOperation(opNext(shuffledName((i*size+j)*7919%n, n), 1)))
		}
		entries[i] = l.encode(g)
	}
	took := measure(func() {
		for _, data := range entries {
			l.index++
			if _, err := l.state.Apply(l.index, data); err != nil {
				l.t.Fatal(err)
			}
		}
	})
	return took.cpu / (groups * size)
}

// took is how long something took.
type took struct{ wall, cpu time.Duration }

func (t took) String() string { return fmt.Sprintf("%v (%v of processor time)", t.wall, t.cpu) }

// measure runs f, on a locked thread.
func measure(f func()) took {
	began, used := time.Now(), cputime.Thread()
	f()
	return took{time.Since(began), cputime.Thread() - used}
}

// measureSnapshot takes a snapshot and writes it while operations are applied.
func (l *testLog) measureSnapshot(n int) []byte {
	l.t.Helper()
	quiet := l.measureApply(n, func(i int) bool { return i < 1000 })
	var snapshot *Snapshot
	hold := measure(func() { snapshot = l.state.Snapshot() })
	var data bytes.Buffer
	data.Grow(200 * n)
	written := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := snapshot.WriteTo(&data)
		written <- err
	}()
	var err error
	busy := l.measureApply(n, func(int) bool {
		select {
		case err = <-written:
			return false
		default:
			return true
		}
	})
	wrote := time.Since(began)
	snapshot.Close()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("Snapshot() held up Apply for %v; writing %d MB beside it took %v", hold, data.Len()>>20, wrote)
	l.t.Logf("Apply of 64 operations before the snapshot: %v", quiet)
	l.t.Logf("Apply of 64 operations while it is written: %v", busy)
	if hold.cpu > maxSnapshotHold {
		l.t.Errorf("Snapshot() held up Apply for more than %v", maxSnapshotHold)
	}
	return data.Bytes()
}

// measureApply applies entries of 64 operations on names all over the trees.
func (l *testLog) measureApply(n int, more func(i int) bool) string {
	l.t.Helper()
	var wall, cpu []time.Duration
	for i := 0; more(i); i++ {
		var g raftlog.Group
		for j := range 64 {
			g.Operations = append(g.Operations, encodeOperation(opNext(shuffledName(i*64+j*7919, n), 1)))
		}
		data := l.encode(g)
		l.index++
		var err error
		took := measure(func() { _, err = l.state.Apply(l.index, data) })
		if err != nil {
			l.t.Fatal(err)
		}
		wall, cpu = append(wall, took.wall), append(cpu, took.cpu)
	}
	return fmt.Sprintf("%d times, %s; processor time %s", len(wall), quantiles(wall), quantiles(cpu))
}

func quantiles(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	return fmt.Sprintf("p50 %v, p99 %v, max %v", d[len(d)/2], d[len(d)*99/100], d[len(d)-1])
}

// measureRestore restores the snapshot.
func (l *testLog) measureRestore(data []byte) {
	l.t.Helper()
	s := New(Config{})
	var err error
	took := measure(func() { err = s.Restore(bytes.NewReader(data)) })
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("Restore took %v", took)
	if took.cpu > maxRestore {
		l.t.Errorf("Restore took more than %v", maxRestore)
	}
}
