package history

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Window is how long names are counted together. Busiest counts the present window and the
	// one before, so one to two of them.
	Window = time.Minute
	// maxNames is how many names are counted at once.
	maxNames = 64
	// full is how many calls of a window are counted before half of the calls are left out, and
	// from then on each time again.
	full = 2048
	// enough is of how many calls the rate of a name is guessed, when some are left out.
	enough = 8
)

// Name is something that ids are given of.
type Name struct {
	// Kind is identity, hilo, server-side or series.
	Kind     string `json:"kind"`
	Database string `json:"database"`
	Name     string `json:"name"`
}

// Rate is how many ids a name was asked for.
type Rate struct {
	Name
	// PerSecond is at least so many, about: it is a guess when calls are sampled.
	PerSecond float64 `json:"ids_per_second"`
}

// Busiest finds the names that the most ids are given of, in bounded memory, by the
// Space-Saving algorithm (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and
// Top-k Elements in Data Streams, 2005). Calls are sampled when they are many, so that they
// meet at no lock. It is safe for concurrent use.
type Busiest struct {
	// shift is by how many powers of two calls are sampled now.
	shift atomic.Uint32

	mu sync.Mutex
	// present is the window that began at began, before the one before it, which took took.
	present, before map[Name]count
	began, took     time.Duration
	counted         int
}

// count is how many ids a name had: at most sum, at least that less error, in so many of the calls
// that were counted. It takes floating point, so that nothing overflows.
type count struct {
	sum, error float64
	calls      int
}

// Count counts n ids of a name.
func (b *Busiest) Count(kind, database, name string, n int64) {
	shift := b.shift.Load()
	if shift > 0 && rand.Uint32()&(1<<shift-1) != 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counted++; b.counted%full == 0 && shift < 16 {
		b.shift.Store(shift + 1)
	}
	b.add(Name{kind, database, name}, float64(n)*float64(int(1)<<shift))
}

func (b *Busiest) add(name Name, n float64) {
	c, known := b.present[name]
	switch {
	case known:
	case b.present == nil:
		b.present = make(map[Name]count, maxNames)
	case len(b.present) >= maxNames:
		c = b.evict()
	}
	if !known { // The text may be a part of a message.
		name = Name{name.Kind, strings.Clone(name.Database), strings.Clone(name.Name)}
	}
	c.sum, c.calls = c.sum+n, c.calls+1
	b.present[name] = c
}

// evict drops the name with the least sum, and returns what the next one begins with.
func (b *Busiest) evict() count {
	var least Name
	sum := -1.0
	for name, c := range b.present {
		if sum < 0 || c.sum < sum {
			least, sum = name, c.sum
		}
	}
	delete(b.present, least)
	return count{sum: sum, error: sum}
}

// Turn begins the next window, once the present one is over.
func (b *Busiest) Turn(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now-b.began < Window {
		return
	}
	b.before, b.took, b.present, b.began, b.counted = b.present, now-b.began, nil, now, 0
	if shift := b.shift.Load(); shift > 0 {
		b.shift.Store(shift - 1)
	}
}

// Top returns the n busiest names that shown allows, the busiest first.
func (b *Busiest) Top(now time.Duration, n int, shown func(Name) bool) []Rate {
	b.mu.Lock()
	sums := make(map[Name]count, 2*maxNames)
	for _, window := range []map[Name]count{b.before, b.present} {
		for name, c := range window {
			sums[name] = count{sum: sums[name].sum + c.sum - c.error, calls: sums[name].calls + c.calls}
		}
	}
	took := max(time.Second, b.took+now-b.began)
	b.mu.Unlock()
	least := 1
	if b.shift.Load() > 0 {
		least = enough
	}
	top := []Rate{}
	for name, c := range sums {
		if c.sum > 0 && c.calls >= least && shown(name) {
			top = append(top, Rate{name, c.sum / took.Seconds()})
		}
	}
	slices.SortFunc(top, func(x, y Rate) int {
		return cmp.Or(cmp.Compare(y.PerSecond, x.PerSecond), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Database, y.Database),
			cmp.Compare(x.Name.Name, y.Name.Name))
	})
	return top[:min(n, len(top))]
}
