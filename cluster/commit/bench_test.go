package commit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/raftlog"
)

// fixedOpener opens session 1.
type fixedOpener struct{}

func (fixedOpener) Open(context.Context) (uint64, []byte, error) {
	return 1, []byte("0123456789abcdef"), nil
}

// quickSender answers each operation with nothing, at once.
type quickSender struct{}

func (quickSender) Send(_ context.Context, _ string, group []byte) (raftlog.GroupResult, error) {
	operations, err := raftlog.CheckGroup(group)
	return raftlog.GroupResult{Status: raftlog.Applied, Results: make([][]byte, operations)}, err
}

// echoLog answers each operation with itself, at once.
type echoLog struct{}

func (echoLog) Append(data []byte) <-chan Appended {
	entry, err := raftlog.DecodeEntry(data, raftlog.FormatVersion)
	a, done := Appended{Err: err}, make(chan Appended, 1)
	for _, g := range entry.Groups {
		a.Results = append(a.Results, raftlog.GroupResult{Status: raftlog.Applied, Results: g.Operations})
	}
	done <- a
	return done
}

// batcherSender hands groups to a Batcher, as the leader's own node does.
type batcherSender struct{ m *Batcher }

func (s batcherSender) Send(ctx context.Context, _ string, group []byte) (raftlog.GroupResult, error) {
	return s.m.Submit(ctx, group)
}

func benchmarkPropose(b *testing.B, sender Sender, goroutines int) {
	g := New(Config{Sender: sender, Opener: fixedOpener{}, Logger: discard, Events: untold, ResultBound: noResults})
	g.SetQuorum(true)
	g.SetLeader("a")
	defer g.Close(context.Background())
	operation := make([]byte, 48)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, err := g.Propose(ctx, operation); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var callers sync.WaitGroup
	for range goroutines {
		callers.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := g.Propose(ctx, operation); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
}

// BenchmarkPropose measures the Gatherer alone: its leader answers at once.
func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{1, 64, 512, 4096} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) { benchmarkPropose(b, quickSender{}, n) })
	}
}

// BenchmarkProposeBatched measures Gatherer and Batcher over a log that answers
// at once.
func BenchmarkProposeBatched(b *testing.B) {
	for _, n := range []int{1, 64, 512, 4096} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			m := NewBatcher(BatcherConfig{
				Log: echoLog{}, Logger: discard, Events: untoldEntries, Now: time.Now,
				Header: func() (uint32, []byte) { return raftlog.FormatVersion, []byte("0123456789abcdef") },
			})
			defer m.Close(context.Background())
			m.Lead(context.Background())
			benchmarkPropose(b, batcherSender{m}, n)
		})
	}
}
