package series

import (
	"fmt"
	"math/rand/v2"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// TestTheFinderFindsWhatASearchFinds: the lowest number of each kind, of a scope of many
// leaves whose numbers change at random, also behind a frozen copy.
func TestTheFinderFindsWhatASearchFinds(t *testing.T) {
	const numbers = 3 * leafSize * fan * fan / 16
	s, err := New(Definition{Format: "{number}", OnRelease: ReleaseReuses, OnExpiry: ExpiryReuses}, &raftlogv1.SeriesBegin{First: 1000})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	keys := func(first int) (keys []string) {
		for i := range 100 {
			keys = append(keys, fmt.Sprint(first+i))
		}
		return keys
	}
	for i := 0; i < numbers; i += 100 {
		if _, err := s.TakeFor(1, Request{Keys: keys(i), Date: format.DateOf(2026, 1, 1), Today: format.DateOf(2026, 1, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	// Each number is in one of the states, and most of them are in the last one.
	for step := range 2_000 {
		c := s.scopes.own(0)
		first := random.Int64N(numbers) + c.offset + 1
		state, expires := []NumberState{Open, Confirmed, Voided, Released, Unknown}[random.IntN(5)], []int64{0, 5, 10, 15}[random.IntN(4)]
		for n := first; n <= min(c.last, first+random.Int64N(200)); n++ {
			c.change(n, func(r *record) { r.state, r.expires = state, expires })
		}
		if step%100 == 0 {
			s.Freeze()
		}
		wanted := wanted{released: random.IntN(2) == 0, ended: random.IntN(2) == 0, lasting: random.IntN(3) == 0, at: random.Int64N(20)}
		from := random.Int64N(c.last + 10)
		if got, want := c.next(from, wanted), search(c, from, wanted); got != want {
			t.Fatalf("step %d: %+v above %d is %d, want %d", step, wanted, from, got, want)
		}
	}
	for i, span := range s.scopes.at(0).finder.levels[0] {
		if leaf := s.scopes.at(0).leaf(i); span != leaf {
			t.Fatalf("leaf %d is %+v, want %+v", i, span, leaf)
		}
	}
	for level := 1; level < len(s.scopes.at(0).finder.levels); level++ {
		for i, span := range s.scopes.at(0).finder.levels[level] {
			if below := s.scopes.at(0).finder.below(level, i); span != below {
				t.Fatalf("span %d of level %d is %+v, want %+v", i, level, span, below)
			}
		}
	}
}

// search looks at each number.
func search(c *scope, above int64, w wanted) int64 {
	for n := max(above, c.offset) + 1; n <= c.last; n++ {
		if w.is(c.at(n)) {
			return n
		}
	}
	return 0
}
