package generator

import (
	"errors"
	"sync/atomic"
	"testing"
)

// TestEveryGenerator takes a few ids from each, alone and together; the
// measuring itself takes too long for a test.
func TestEveryGenerator(t *testing.T) {
	for _, g := range generators {
		t.Run(g.name, func(t *testing.T) {
			take, end, err := g.begin()
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			for _, goroutines := range []int{1, 8} {
				if err := shared(take, 100, goroutines); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSharedTakesAsManyAsAsked(t *testing.T) {
	for _, goroutines := range []int{1, 3, 8} {
		var taken atomic.Int64
		take := func(n int) error {
			taken.Add(int64(n))
			return nil
		}
		if err := shared(take, 1000, goroutines); err != nil || taken.Load() != 1000 {
			t.Errorf("%d goroutines took %d: %v", goroutines, taken.Load(), err)
		}
	}
}

func TestAFailureIsReported(t *testing.T) {
	broken := errors.New("broken")
	g := generator{"broken", func() (loop, func(), error) {
		return func(int) error { return broken }, nothing, nil
	}}
	if _, err := g.measure(1); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := Measure("no such", 1); err == nil {
		t.Error("a generator that does not exist was measured")
	}
}
