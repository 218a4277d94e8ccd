package generator_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/idnode/idnode/client/generator"
)

func benchGenerator(b *testing.B) *generator.Generator {
	b.Helper()
	b.ReportAllocs()
	g := newGenerator(b, &model{}, generator.Config{FirstSize: generator.MaxCount})
	b.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if _, err := g.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	return g
}

// eight runs a function b.N times in all, in eight goroutines.
func eight(b *testing.B, f func()) {
	b.Helper()
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range 8 {
		wg.Go(func() {
			for range (b.N + i) / 8 {
				f()
			}
		})
	}
	wg.Wait()
}

func BenchmarkNumber(b *testing.B) {
	b.Run("1", func(b *testing.B) {
		g, ctx := benchGenerator(b), b.Context()
		b.ResetTimer()
		for range b.N {
			if _, err := g.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("8", func(b *testing.B) {
		g, ctx := benchGenerator(b), b.Context()
		eight(b, func() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
			}
		})
	})
}

// padded keeps what is measured beside the generator on a cache line of its own too.
type padded struct {
	_  [128]byte
	n  atomic.Int64
	mu sync.Mutex
	m  int64
	_  [128]byte
}

func BenchmarkAtomicAdd(b *testing.B) {
	b.Run("1", func(b *testing.B) {
		p := new(padded)
		for range b.N {
			p.n.Add(1)
		}
	})
	b.Run("8", func(b *testing.B) {
		p := new(padded)
		eight(b, func() { p.n.Add(1) })
	})
}

func (p *padded) lockedAdd() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m++
	return p.m
}

func BenchmarkMutexAdd(b *testing.B) {
	b.Run("1", func(b *testing.B) {
		p := new(padded)
		for range b.N {
			p.lockedAdd()
		}
	})
	b.Run("8", func(b *testing.B) {
		p := new(padded)
		eight(b, func() { p.lockedAdd() })
	})
}

func BenchmarkString(b *testing.B) {
	b.Run("NextID", func(b *testing.B) {
		g, ctx := benchGenerator(b), b.Context()
		b.ResetTimer()
		for range b.N {
			if _, err := g.NextID(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("NextIDs1000", func(b *testing.B) {
		g, ctx := benchGenerator(b), b.Context()
		b.ResetTimer()
		for i := 0; i < b.N; i += 1000 {
			if _, err := g.NextIDs(ctx, min(1000, b.N-i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("UUIDv4", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_ = uuid.NewString()
		}
	})
	b.Run("UUIDv7", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_ = uuid.Must(uuid.NewV7()).String()
		}
	})
}
