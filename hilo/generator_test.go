package hilo_test

import (
	"context"
	"sync"
	"testing"

	"github.com/idnode/idnode/client/generator"
	"github.com/idnode/idnode/hilo"
)

// counted is a cluster of one counter, as a source of ranges.
type counted struct {
	counter hilo.Counter
	token   uint64
	returns []bool
}

// Next is part of generator.RangeSource.
func (s *counted) Next(_ context.Context, r generator.Request) (generator.Range, error) {
	size := r.Size
	if size == 0 {
		size = hilo.NextSize(r.LastSize, 0, r.LastSize != 0)
	}
	s.token++
	next, got, err := s.counter.Next(size, r.LastMax, s.token, hilo.Holder{})
	s.counter = next
	return generator.Range{Low: got.Low, High: got.High, Granted: size}, err
}

// Return is part of generator.RangeSource.
func (s *counted) Return(_ context.Context, r generator.Range, last int64) error {
	next, ok := s.counter.Return(hilo.Range{Low: r.Low, High: r.High}, last, 0, false)
	s.counter, s.returns = next, append(s.returns, ok)
	return nil
}

// TestTheClientsGenerator: generators take numbers of one counter, one generator after the other, and
// leave no hole: the counter takes back what they have left.
func TestTheClientsGenerator(t *testing.T) {
	const generators, callers, each = 20, 4, 50
	source := &counted{}
	seen := make(map[int64]bool)
	var mu sync.Mutex
	for range generators {
		g, err := generator.New(source, generator.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var taking sync.WaitGroup
		for range callers {
			taking.Go(func() {
				for range each {
					n, err := g.Next(t.Context())
					mu.Lock()
					if err != nil || seen[n.Value()] {
						t.Errorf("%d, %v", n.Value(), err)
					}
					seen[n.Value()] = true
					mu.Unlock()
				}
			})
		}
		taking.Wait()
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if source.counter.Max != int64(len(seen)) || len(seen) != generators*callers*each {
		t.Errorf("%d numbers were taken of %d; returns: %v", len(seen), source.counter.Max, source.returns)
	}
}

// TestTheClientsLimits: the client's module has them without the counter.
func TestTheClientsLimits(t *testing.T) {
	if generator.MaxCount != hilo.MaxSize || generator.ErrSize.Error() != hilo.ErrSize.Error() {
		t.Errorf("a generator asks for %d numbers, and a counter gives %d; %v", generator.MaxCount, hilo.MaxSize, generator.ErrSize)
	}
}
