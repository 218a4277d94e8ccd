// Package generator measures what makes ids inside one process: idnode's HiLo
// generator beside others, and beside the least that counting can cost.
//
// It owns what each loop does. How often they run is for its user.
package generator

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Stats is what one generator was measured at.
type Stats struct {
	// Name is one of Names.
	Name string `json:"name"`
	// Goroutines is how many took ids at a time.
	Goroutines int `json:"goroutines"`
	// NsPerID is the time that passed, over all ids of all goroutines.
	NsPerID float64 `json:"ns_per_id"`
	// AllocsPerID is how often memory was allocated for an id.
	AllocsPerID int64 `json:"allocs_per_id"`
}

// loop takes so many ids, one after the other. The loop is inside, so that no
// call through a pointer is measured with each.
type loop func(n int) error

// Names returns the generators in the order they are shown.
func Names() []string {
	var names []string
	for _, g := range generators {
		names = append(names, g.name)
	}
	return names
}

// SetDuration sets how long one measurement takes, about. It concerns the whole
// process.
func SetDuration(d time.Duration) error {
	testing.Init()
	return flag.Set("test.benchtime", d.String())
}

// Measure lets so many goroutines share one generator.
func Measure(name string, goroutines int) (Stats, error) {
	for _, g := range generators {
		if g.name == name {
			return g.measure(goroutines)
		}
	}
	return Stats{}, fmt.Errorf("there is no generator %q", name)
}

func (g generator) measure(goroutines int) (Stats, error) {
	take, end, err := g.begin()
	if err != nil {
		return Stats{}, err
	}
	var failed error
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		if failed = shared(take, b.N, goroutines); failed != nil {
			b.FailNow()
		}
	})
	end()
	if failed != nil {
		return Stats{}, fmt.Errorf("%s: %w", g.name, failed)
	}
	return Stats{
		Name: g.name, Goroutines: goroutines,
		NsPerID: float64(r.T.Nanoseconds()) / float64(r.N), AllocsPerID: r.AllocsPerOp(),
	}, nil
}

// shared lets goroutines take n ids in all.
func shared(take loop, n, goroutines int) error {
	if goroutines == 1 {
		return take(n)
	}
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() { errs[i] = take((n + i) / goroutines) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
