package fsm

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// benchNames is how many identities the benchmarks' states hold.
const benchNames = 100_000

func benchName(i int) string { return fmt.Sprintf("collections/%07d", i) }

// fillIdentities takes one value of each of n identities.
func (l *testLog) fillIdentities(n int) {
	l.t.Helper()
	for i := 0; i < n; {
		var g raftlog.Group
		for ; i < n && len(g.Operations) < 1000; i++ {
			g.Operations = append(g.Operations, encodeOperation(opNext(benchName(i), 1)))
		}
		l.apply(g)
		l.entries = nil
	}
}

// BenchmarkIdentityNext: one value of some identity of 100,000 per operation, in
// entries of one group.
func BenchmarkIdentityNext(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		for _, ids := range []bool{false, true} {
			b.Run(fmt.Sprintf("group=%d/ids=%v", size, ids), func(b *testing.B) { benchmarkNext(b, size, ids) })
		}
	}
}

func benchmarkNext(b *testing.B, size int, ids bool) {
	l := newFormedLog(b)
	l.fillIdentities(benchNames)
	session := l.announce("A")
	g := raftlog.Group{Origin: nodeNamed("node A"), Session: session}
	operations := make([][]byte, 4096)
	for i := range operations {
		op := opNext(benchName(i*7919%benchNames), 1)
		if ids {
			op = keyed(op, key(0, 7))
		}
		operations[i] = encodeOperation(op)
	}
	var encoded, data []byte
	request, at := uint64(0), 0
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += size {
		g.Operations = g.Operations[:0]
		for range size {
			op := operations[at%len(operations)]
			at++
			if ids { // The key begins after database, and two tags and lengths.
				request++
				binary.LittleEndian.PutUint64(op[8:], request)
			}
			g.Operations = append(g.Operations, op)
		}
		g.Acknowledged = g.Sequence
		g.Sequence++
		l.index++
		encoded = raftlog.AppendGroup(encoded[:0], g)
		h := raftlog.Header{Format: 1, ClusterID: testCluster, TimeUnixNano: 1}
		data = raftlog.AppendEntry(data[:0], h, [][]byte{encoded})
		results, err := l.state.Apply(l.index, data)
		if err != nil || results[0].Status != raftlog.Applied {
			b.Fatalf("%v, %v", results, err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	if want := uint64(b.N); ids && want > 1 && l.state.Counts().Requests < min(want, 1_000_000) {
		b.Fatalf("%d request ids are remembered of %d", l.state.Counts().Requests, want)
	}
}

// BenchmarkHiLoNext: one range of some tag of 10,000 per operation.
func BenchmarkHiLoNext(b *testing.B) {
	for _, label := range []string{"", "till-3 books"} {
		b.Run("label="+label, func(b *testing.B) { benchmarkHiLoNext(b, label) })
	}
}

func benchmarkHiLoNext(b *testing.B, label string) {
	l := newFormedLog(b)
	g := raftlog.Group{}
	for i := range 512 {
		g.Operations = append(g.Operations, encodeOperation(opHiLo(&raftlogv1.HiLoNext{
			Tag: benchName(i * 19), LastSize: 32, HasLastRange: true, Token: uint64(i) << 40, ServerTag: "A", Label: label,
		})))
	}
	data := l.encode(g)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += len(g.Operations) {
		l.index++
		if _, err := l.state.Apply(l.index, data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkRequestWindow: one more request id in a full window, of some caller.
func BenchmarkRequestWindow(b *testing.B) {
	for _, callers := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkRequestWindow(b, callers) })
	}
}

func benchmarkRequestWindow(b *testing.B, callers int) {
	const window = 100_000
	names := make([][]byte, callers)
	for i := range names {
		names[i] = fmt.Appendf(nil, "dns:till-%d.shop.example", i)
	}
	w, result := newRequestWindow(), make([]byte, 20)
	push := func(i int) {
		k := op.RequestKey{Fingerprint: uint64(i)}
		binary.LittleEndian.PutUint64(k.Key[:], uint64(i)*0x9e3779b97f4a7c15)
		w.evict(window-1, uint64(i), 1)
		w.push(w.share(names[i*7919%callers]), &k, uint64(i), result)
	}
	for i := range 2 * window {
		push(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		push(2*window + i)
	}
}
