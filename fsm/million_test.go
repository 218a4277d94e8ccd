package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// Bounds on a state of a million names. They are wide, for a busy machine and a
// binary that looks for races; TestAMillionNames prints what it measured.
const (
	maxBytesPerName = 150
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

// heap returns the bytes in use.
func heap() uint64 {
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
	for i := 0; i < n; {
		var g raftlog.Group
		for ; i < n && len(g.Operations) < 1000; i++ {
			g.Operations = append(g.Operations, encodeOperation(op(i)))
		}
		l.index++
		if _, err := l.state.Apply(l.index, l.encode(g)); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestMemoryPerName(t *testing.T) {
	n := million() / 4
	for name, op := range map[string]func(i int) *raftlogv1.Operation{
		"identity in order": func(i int) *raftlogv1.Operation { return opNext(benchName(i), 1) },
		"identity":          func(i int) *raftlogv1.Operation { return opNext(shuffledName(i, n), 1) },
		"claim":             func(i int) *raftlogv1.Operation { return opClaimID(shuffledName(i, n)) },
		// Each tag keeps as many ranges as it can.
		"hilo": func(i int) *raftlogv1.Operation {
			return opHiLo(&raftlogv1.HiLoNext{Tag: shuffledName(i%n, n), Token: uint64(i) * 0x9e3779b97f4a7c15, ServerTag: "A"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFormedLog(t)
			before := heap()
			times := 1
			if name == "hilo" {
				times = 4
			}
			l.fill(times*n, op)
			perName := float64(heap()-before) / float64(n)
			runtime.KeepAlive(l)
			t.Logf("%.0f bytes of heap for each name, %d of them in it", perName, len(benchName(0)))
			if perName > maxBytesPerName && name != "claim" {
				t.Errorf("more than %d", maxBytesPerName)
			}
		})
	}
}

func TestMemoryPerRequestID(t *testing.T) {
	n := million() / 4
	l := newFormedLog(t)
	before := heap()
	l.fill(n, func(i int) *raftlogv1.Operation {
		op := opNext("users", 1)
		op.Request = key(i, 7)
		return op
	})
	t.Logf("%.0f bytes of heap for each remembered request id", float64(heap()-before)/float64(n))
	runtime.KeepAlive(l)
}

func TestAMillionNames(t *testing.T) {
	n := million()
	l := newFormedLog(t)
	l.fill(n/2, func(i int) *raftlogv1.Operation { return keyed(opNext(shuffledName(i, n), 1), key(i, 1)) })
	l.fill(n/2, func(i int) *raftlogv1.Operation {
		return opHiLo(&raftlogv1.HiLoNext{Tag: shuffledName(i, n), Token: uint64(i), ServerTag: "A"})
	})
	data := l.measureSnapshot(n)
	l.measureRestore(data)
}

// measureSnapshot takes a snapshot and writes it while operations are applied.
func (l *testLog) measureSnapshot(n int) []byte {
	l.t.Helper()
	quiet := l.measureApply(n, func(i int) bool { return i < 2000 })
	began := time.Now()
	snapshot := l.state.Snapshot()
	hold := time.Since(began)
	var data bytes.Buffer
	data.Grow(200 * n)
	written := make(chan error, 1)
	began = time.Now()
	go func() {
		_, err := snapshot.WriteTo(&data)
		written <- err
	}()
	var err error
	busy := l.measureApply(n, func(i int) bool {
		select {
		case err = <-written:
			return false
		default:
			return true
		}
	})
	took := time.Since(began)
	snapshot.Close()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("Snapshot() held up Apply for %v; writing %d MB took %v", hold, data.Len()>>20, took)
	l.t.Logf("Apply of 64 operations before the snapshot: %v", quiet)
	l.t.Logf("Apply of 64 operations while it is written: %v", busy)
	if hold > maxSnapshotHold {
		l.t.Errorf("Snapshot() held up Apply for more than %v", maxSnapshotHold)
	}
	return data.Bytes()
}

// quantiles are of how long Apply took.
type quantiles struct {
	count         int
	p50, p99, max time.Duration
}

func (q quantiles) String() string {
	return fmt.Sprintf("%d times, p50 %v, p99 %v, max %v", q.count, q.p50, q.p99, q.max)
}

// measureApply applies entries of 64 operations on names all over the trees.
func (l *testLog) measureApply(n int, more func(i int) bool) quantiles {
	l.t.Helper()
	var took []time.Duration
	for i := 0; more(i); i++ {
		var g raftlog.Group
		for j := range 64 {
			g.Operations = append(g.Operations, encodeOperation(opNext(shuffledName(i*64+j*7919, n), 1)))
		}
		data := l.encode(g)
		l.index++
		began := time.Now()
		if _, err := l.state.Apply(l.index, data); err != nil {
			l.t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	if len(took) == 0 {
		return quantiles{}
	}
	slices.Sort(took)
	return quantiles{len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1]}
}

// measureRestore restores the snapshot.
func (l *testLog) measureRestore(data []byte) {
	l.t.Helper()
	s := New(Config{})
	began := time.Now()
	// A file cannot be read twice at once either.
	if err := s.Restore(io.MultiReader(bytes.NewReader(data))); err != nil {
		l.t.Fatal(err)
	}
	took := time.Since(began)
	l.t.Logf("Restore took %v", took)
	if took > maxRestore {
		l.t.Errorf("Restore took more than %v", maxRestore)
	}
}
