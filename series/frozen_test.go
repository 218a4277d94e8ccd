package series_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// record is a piece of a frozen series, and stored one of its numbers.
type (
	record = raftlogv1.SeriesNumbersRecord
	stored = raftlogv1.SeriesStored
)

// restore has the series go on as a copy of itself.
func (h *history) restore() {
	h.log = append(h.log, fmt.Sprintf("%d: restored", h.now))
	next := restored(h.t, h.s.Freeze())
	if err := next.Verify(); err != nil || next.Hash() != h.s.Hash() {
		h.fail("restored with hash %x, want %x: %v", next.Hash(), h.s.Hash(), err)
	}
	h.s = next
}

func restored(t *testing.T, f series.Frozen) *series.Series {
	t.Helper()
	m, _ := f.Record()
	s, err := series.Restore(m)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, f)
	return s
}

// put puts what a frozen series has into another.
func put(t *testing.T, s *series.Series, f series.Frozen) {
	t.Helper()
	f.Pieces(func(p *record) bool {
		if err := s.PutNumbers(p); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		return true
	})
	f.Lost(func(l *raftlogv1.SeriesLostRecord) bool {
		if err := s.PutLost(l); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		return true
	})
}

// dump is all that a frozen series has.
func dump(f series.Frozen) string {
	var b strings.Builder
	m, _ := f.Record()
	fmt.Fprint(&b, m)
	f.Pieces(func(p *record) bool { fmt.Fprintf(&b, " %+v", p); return true })
	f.Lost(func(l *raftlogv1.SeriesLostRecord) bool { fmt.Fprintf(&b, " %+v", l); return true })
	return b.String()
}

// TestAFrozenCopyOfManySlabs: numbers of several slabs change behind a copy, and new ones
// come into the one that was not full.
func TestAFrozenCopyOfManySlabs(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}"})
	fill(t, s, 0, 700)
	f := s.Freeze()
	then := dump(f)
	fill(t, s, 700, 1000)
	for _, n := range []int{0, 300, 699, 800} {
		if _, err := s.Void(5, []*raftlogv1.SeriesKey{{Key: fmt.Sprintf("invoice-%08d", n)}}, "torn"); err != nil {
			t.Fatal(err)
		}
	}
	if dump(f) != then {
		t.Error("the copy has changed")
	}
	if got := restored(t, s.Freeze()); got.Hash() != s.Hash() || got.Verify() != nil {
		t.Errorf("restored with hash %x, want %x: %v", got.Hash(), s.Hash(), got.Verify())
	}
}

// TestAFrozenCopyIsReadBesideChanges: the race detector finds what they share.
func TestAFrozenCopyIsReadBesideChanges(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
	fill(t, s, 0, 500)
	release := func(first int) {
		for n := range 100 {
			if _, err := s.Release(1, []*raftlogv1.SeriesKey{{Key: fmt.Sprintf("invoice-%08d", first+n)}}); err != nil {
				t.Error(err)
			}
		}
	}
	release(0)
	fill(t, s, 500, 600) // They have numbers of others, which are lost.
	f := s.Freeze()
	then, during := dump(f), make(chan string)
	go func() { during <- dump(f) }()
	release(200)
	fill(t, s, 600, 1000)
	if <-during != then || dump(f) != then {
		t.Error("the copy has changed")
	}
}

// TestAFrozenCopyOfManyScopes: scopes begin, close and change behind it while it is read.
func TestAFrozenCopyOfManyScopes(t *testing.T) {
	s := newSeries(t, series.Definition{Format: "{branch}-{number}", OnExpiry: series.ExpiryVoids, ExpiresIn: 10})
	take := func(now int64, branch int, key string) {
		mustTake(t, s, now, series.Request{Date: today, Today: today, Values: []string{fmt.Sprint(branch)}, Keys: []string{key}})
	}
	for branch := range 600 {
		take(1, branch, fmt.Sprint(branch))
	}
	f := s.Freeze()
	then, during := dump(f), make(chan string)
	go func() { during <- dump(f) }()
	for branch := 0; branch < 900; branch += 2 {
		take(20, branch, fmt.Sprint(branch, "again"))
		if _, err := s.CloseScope(21, []string{fmt.Sprint(branch)}); err != nil {
			t.Fatal(err)
		}
	}
	later := s.Freeze()
	if got := restored(t, later); got.Hash() != s.Hash() || got.Verify() != nil {
		t.Errorf("restored with hash %x, want %x: %v", got.Hash(), s.Hash(), got.Verify())
	}
	if <-during != then || dump(f) != then {
		t.Error("the copy has changed")
	}
}

// piece is one number of the scope of request.
func piece(first int64, numbers ...*stored) *record {
	return &record{Scope: []string{"2026", "BERLIN"}, First: first, Numbers: numbers}
}

// TestPiecesInTheirOrder alone are those of a series.
func TestPiecesInTheirOrder(t *testing.T) {
	s := newSeries(t, series.Definition{OnExpiry: series.ExpiryReuses, ExpiresIn: 10})
	mustTake(t, s, 1, request("a"))
	mustTake(t, s, 20, request("b", "c")) // b has the number of a.
	hash := s.Hash()
	with := func(key string) *stored {
		return &stored{Key: key, State: uint32(series.Open), Date: int32(today), TakenUnixNano: 1}
	}
	for name, tt := range map[string]struct {
		piece *record
		want  string
	}{
		"a known number": {piece(2, with("z")), "numbers do not follow those before them"},
		"a hole":         {piece(4, with("z")), "numbers do not follow those before them"},
		"no number":      {piece(0, with("z")), "numbers do not follow those before them"},
		"a known key":    {piece(3, with("b")), "keys are known already"},
		"a lost key":     {piece(3, with("a")), "keys are known already"},
	} {
		if got := kind(s.PutNumbers(tt.piece)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for _, l := range []*raftlogv1.SeriesLostRecord{{Key: "y"}, {Key: "y", Number: 1_000_000}, {Number: 1}} {
		if s.PutLost(l) == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	if s.Hash() != hash {
		t.Error("what was refused has changed the series")
	}
}

// TestAPieceIsTakenAsAWhole: one wrong number behind a right one leaves the series without
// both, and without their scope. A member that restores the state would not have them.
func TestAPieceIsTakenAsAWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(p *record, n *stored)
		want   string
	}{
		"no numbers of some": {func(p *record, _ *stored) { p.Numbers, p.First = nil, 2 }, "numbers are empty"},
		"too many":           {func(p *record, _ *stored) { p.Numbers = make([]*stored, 257) }, "numbers are more than 256"},
		"a begin below 1":    {func(p *record, _ *stored) { p.Begin = -1 }, "begin cannot be shown by the format"},
		"a begin too wide":   {func(p *record, _ *stored) { p.Begin = 1_000_000 }, "begin cannot be shown by the format"},
		"before the begin":   {func(p *record, _ *stored) { p.Begin = 2 }, "numbers do not follow those before them"},
		"behind the begin":   {func(p *record, _ *stored) { p.Begin, p.First = 2, 3 }, "numbers do not follow those before them"},
		"no first":           {func(p *record, _ *stored) { p.First = 0 }, "numbers do not follow those before them"},
		"no scope":           {func(p *record, _ *stored) { p.Scope[0] = "26" }, "scope is not one of the format"},
		"no state":           {func(_ *record, n *stored) { n.State = 0 }, "numbers have one without a state"},
		"voided, no reason":  {func(_ *record, n *stored) { n.State = uint32(series.Voided) }, "numbers have one with a wrong reason"},
		"open with a reason": {func(_ *record, n *stored) { n.Reason = "torn" }, "numbers have one with a wrong reason"},
		"a long label": {
			func(_ *record, n *stored) { n.Label = strings.Repeat("x", 65) },
			"numbers have one with a wrong label",
		},
		"no date": {func(_ *record, n *stored) { n.Date = int32(format.LastDate + 1) }, "numbers have one with a wrong date"},
		"another period": {
			func(_ *record, n *stored) { n.Date = int32(format.DateOf(2025, 12, 31)) },
			"numbers have one with a wrong date",
		},
		"no key": {func(_ *record, n *stored) { n.Key = "" }, "numbers have one without a key"},
		"a long key": {
			func(_ *record, n *stored) { n.Key = strings.Repeat("x", 129) },
			"keys has a key of more than 128 bytes",
		},
		"a key twice": {func(_ *record, n *stored) { n.Key = "y" }, "keys are known already"},
	} {
		s := newSeries(t, series.Definition{})
		hash := s.Hash()
		p := piece(1)
		for _, key := range []string{"y", "z"} {
			p.Numbers = append(p.Numbers, &stored{Key: key, State: uint32(series.Open), Date: int32(today), TakenUnixNano: 1})
		}
		tt.change(p, p.Numbers[1])
		if got := kind(s.PutNumbers(p)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if _, ok := s.At(1).WhoHas("y"); ok || s.Hash() != hash || len(s.At(1).Report(0, 100, 0)) != 0 {
			t.Errorf("%s: the series has changed", name)
		}
	}
}

// TestATimeAtTheEnd: a clock that is far ahead makes no number expire at once.
func TestATimeAtTheEnd(t *testing.T) {
	s := newSeries(t, series.Definition{ExpiresIn: time.Hour})
	if n := mustTake(t, s, math.MaxInt64-1, request("a"))[0]; n.Overdue || n.ExpiresUnixNano != math.MaxInt64 {
		t.Errorf("%+v", n)
	}
}

// TestASuspendedSeries gives no numbers, ends those that it has, and goes on behind those
// that are in the books.
func TestASuspendedSeries(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a", "b"))
	if _, err := s.Void(1, []*raftlogv1.SeriesKey{{Key: "b"}}, "torn"); err != nil {
		t.Fatal(err)
	}
	s.Suspend()
	if _, err := s.TakeFor(2, request("c")); kind(err) != "suspended" {
		t.Fatalf("a suspended series gave a number: %v", err)
	}
	if _, err := s.Confirm(2, []*raftlogv1.SeriesKey{{Key: "a"}}); err != nil {
		t.Fatal(err)
	}
	s = restored(t, s.Freeze())
	for name, books := range map[string][]*raftlogv1.SeriesInBooks{
		"a scope of another format": {{Scope: []string{"BERLIN"}, Last: 3}},
		"a period that is none":     {{Scope: []string{"May", "BERLIN"}, Last: 3}},
		"a scope twice":             {{Scope: []string{"2026", "BERLIN"}, Last: 3}, {Scope: []string{"2026", "BERLIN"}, Last: 4}},
		"the number 0":              {{Scope: []string{"2026", "BERLIN"}}},
		"too many":                  {{Scope: []string{"2026", "BERLIN"}, Last: 3 + series.MaxUnknown}},
		"wider than the format":     {{Scope: []string{"2026", "BERLIN"}, Last: 1_000_000}},
	} {
		if err := s.Resume(3, books, false); err == nil || !s.Suspended() {
			t.Errorf("%s: resumed", name)
		}
	}
	var many []*raftlogv1.SeriesInBooks
	for year := range 11 {
		many = append(many, &raftlogv1.SeriesInBooks{Scope: []string{strconv.Itoa(2030 + year), "BERLIN"}, Last: series.MaxUnknown})
	}
	if err := s.Resume(3, many, false); kind(err) != "books are together more than 1,000,000 beyond the numbers that are known" {
		t.Errorf("too many in all scopes: %v", err)
	}
	books := []*raftlogv1.SeriesInBooks{{Scope: []string{"2026", "BERLIN"}, Last: 4}, {Scope: []string{"2027", "ULM"}, Last: 1}}
	if err := s.Resume(3, books, false); err != nil || s.Suspended() || s.Verify() != nil {
		t.Fatalf("%v, %v", err, s.Verify())
	}
	if n := mustTake(t, s, 4, request("c"))[0]; n.Number != 5 {
		t.Errorf("went on with %d, want 5", n.Number)
	}
	unknown, _, err := s.At(4).Numbers([]string{"2026", "BERLIN"}, series.Unknown, 0, 10)
	if err != nil || len(unknown) != 2 || unknown[1].Number != 4 || unknown[1].Key != "" {
		t.Errorf("%+v, %v", unknown, err)
	}
	ulm, _, err := s.At(4).Numbers([]string{"2027", "ULM"}, 0, 0, 10)
	if err != nil || len(ulm) != 1 || !strings.HasPrefix(ulm[0].Text, "INV-ULM-2027-000001") {
		t.Errorf("%+v, %v", ulm, err)
	}
	hash := s.Hash()
	if err := s.Resume(5, nil, false); err != nil {
		t.Errorf("resumed again: %v", err)
	}
	// Who believes that it needs numbers is not told that all is well.
	for _, said := range [][]*raftlogv1.SeriesInBooks{
		books,
		{{Scope: []string{"2026", "BERLIN"}, Last: 6}},
		{{Scope: []string{"2028", "ULM"}, Last: 1}},
		{{Scope: []string{"2026", "BERLIN"}, Last: 2}},
	} {
		if err := s.Resume(6, said, false); wrongField(err) != "books" {
			t.Errorf("an active series was resumed with %v: %v", said, err)
		}
	}
	if s.Hash() != hash {
		t.Error("resuming an active series has changed it")
	}
	if got := restored(t, s.Freeze()); got.Hash() != s.Hash() {
		t.Error("the hash of the restored series is another")
	}
}

// TestADateBefore1970 is as good as others.
func TestADateBefore1970(t *testing.T) {
	s := newSeries(t, series.Definition{Order: series.OrderDates})
	q := request("a")
	q.Date = format.DateOf(1960, time.May, 1)
	mustTake(t, s, 1, q)
	q.Keys = []string{"b"}
	if n := mustTake(t, s, 2, q); n[0].Number != 2 {
		t.Errorf("got %+v", n)
	}
}

// TestNumbersAboveAll: a page behind the last one is empty.
func TestNumbersAboveAll(t *testing.T) {
	s := newSeries(t, series.Definition{})
	mustTake(t, s, 1, request("a"))
	for _, above := range []int64{1, 2, 1<<63 - 1} {
		if all, _, err := s.At(1).Numbers([]string{"2026", "BERLIN"}, 0, above, 10); err != nil || len(all) != 0 {
			t.Errorf("above %d: %v, %v", above, all, err)
		}
	}
}
