package generator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"unsafe"
)

// tens is a source of ranges of ten numbers.
type tens struct {
	given, returned int64
}

func (s *tens) Next(context.Context, Request) (Range, error) {
	s.given++
	return Range{Low: 10*s.given - 9, High: 10 * s.given}, nil
}

func (s *tens) Return(context.Context, Range, int64) error {
	s.returned++
	return nil
}

// TestLatePrefetch: the caller that took the number at the half of a range may request the
// next range so late that the generator has moved on. The request must neither replace a
// range ahead, nor fetch a range too early, nor start a fetcher after Close. No schedule of
// callers causes this reliably, so the test calls the functions that callers call.
func TestLatePrefetch(t *testing.T) {
	tests := []struct {
		name  string
		take  int
		given int64 // ranges, before and after
		then  func(*Generator)
	}{
		{"the next range is there", 5, 2, func(*Generator) {}},
		{"the next range is in use", 12, 2, func(*Generator) {}},
		{"closed", 4, 1, func(g *Generator) { _ = g.Close(context.Background()) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tens{}
				g, err := New(s, Config{})
				if err != nil {
					t.Fatal(err)
				}
				var first *heldRange
				for range tt.take {
					n, err := g.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = n.of
					}
					synctest.Wait()
				}
				tt.then(g)
				g.prefetch(first)
				synctest.Wait()
				if s.given != tt.given {
					t.Errorf("%d ranges, want %d", s.given, tt.given)
				}
				if err := g.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOneFetcher: two reasons to fetch a range at the same time start one fetcher.
func TestOneFetcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tens{}
		g, err := New(s, Config{})
		if err != nil {
			t.Fatal(err)
		}
		g.prefetch(g.current.Load())
		g.prefetch(g.current.Load())
		synctest.Wait()
		if s.given != 1 {
			t.Errorf("%d ranges were fetched", s.given)
		}
		if err := g.Close(t.Context()); err != nil || s.returned != 1 {
			t.Errorf("Close: %v, %d returns", err, s.returned)
		}
	})
}

// TestNumberAtTheLastMoment: a caller whose context ends in the moment in which it was
// given numbers, or refused, has them, or that error.
func TestNumberAtTheLastMoment(t *testing.T) {
	g, err := New(&tens{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	served, refused, waiting := g.queue.join(4), g.queue.join(5), g.queue.join(6)
	g.queue.serve(newHeldRange(Range{Low: 7, High: 10}))
	if b, err := g.giveUp(ended, served); err != nil || b.first != 7 || b.n != 4 {
		t.Errorf("the served caller: %d from %d on, %v", b.n, b.first, err)
	}
	if b, err := g.giveUp(ended, waiting); !errors.Is(err, context.Canceled) || b.n != 0 {
		t.Errorf("the waiting caller: %d from %d on, %v", b.n, b.first, err)
	}
	g.queue.refuse(ErrClosed)
	if b, err := g.giveUp(ended, refused); !errors.Is(err, ErrClosed) || b.n != 0 {
		t.Errorf("the refused caller: %d from %d on, %v", b.n, b.first, err)
	}
	if len(waiting.got) != 0 {
		t.Error("the caller that left was answered")
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSpentCounterStays: asking for many of a range that is used up does not move its
// counter, which could otherwise come round.
func TestSpentCounterStays(t *testing.T) {
	s := newHeldRange(Range{Low: 1, High: 10})
	s.take(8)
	if b, _ := s.take(MaxCount); b.first != 9 || b.n != 2 {
		t.Errorf("the rest is %d from %d on", b.n, b.first)
	}
	used := s.used.Load()
	if b, _ := s.take(MaxCount); b.n != 0 || s.used.Load() != used {
		t.Errorf("a range that is used up gave %d numbers; its counter rose by %d", b.n, s.used.Load()-used)
	}
	if last := s.exhaust(); last != 10 {
		t.Errorf("the last number is %d", last)
	}
}

// TestCacheLines: whatever is written by every call is on cache lines of its own,
// wherever the allocator puts it.
func TestCacheLines(t *testing.T) {
	var s heldRange
	before := unsafe.Offsetof(s.used) - unsafe.Offsetof(s.half)
	after := unsafe.Sizeof(s) - unsafe.Offsetof(s.used)
	if before < line || after < line {
		t.Errorf("the counter is %d bytes from its range and %d from the next object", before, after)
	}
	var g Generator
	if apart := unsafe.Offsetof(g.mu) - unsafe.Offsetof(g.current); apart < line {
		t.Errorf("the range in use is %d bytes from the mutex", apart)
	}
}
