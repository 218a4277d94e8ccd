package format

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestParseScopeFindsTheFirstDate: of each scope that Scope gives, also where the years end
// that the tokens can name.
func TestParseScopeFindsTheFirstDate(t *testing.T) {
	edges := []Date{
		FirstDate, FirstDate + 100, FirstDate + 300, LastDate, DateOf(2000, 1, 1), DateOf(2000, 3, 1),
		DateOf(2099, 12, 31), DateOf(2020, 12, 31), DateOf(2021, 1, 3), DateOf(2024, 2, 29),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		edges = append(edges, FirstDate+Date(r.IntN(int(LastDate-FirstDate))), DateOf(2000, 1, 1)+Date(r.IntN(36_000)))
	}
	for _, template := range []string{
		"{branch}-{year}-{month}-{day}-{number}", "{branch}-{yy}-{month}-{day}-{week}-{week-year}-{number}",
		"{branch}-{fiscal-year:04-01}-{year}-{month}-{day}-{number}", "{branch}-{fiscal-year:07-01:end}-{yy}-{month}-{day}-{number}",
	} {
		for reset := ResetNever; reset <= ResetFiscalYear; reset++ {
			f, err := Define(template, reset)
			if err != nil {
				continue // A reset that the template does not show.
			}
			for _, d := range edges {
				checkFirstDate(t, f, d)
			}
		}
	}
}

func checkFirstDate(t *testing.T, f *Format, d Date) {
	t.Helper()
	scope, err := f.Scope(d, []string{"A"})
	if err != nil {
		return // No document has this date.
	}
	first, values, err := f.ParseScope(scope)
	if err != nil || !slices.Equal(values, []string{"A"}) {
		t.Fatalf("%s, reset %d, %s: %v of %v: %v", f.Template(), f.Reset(), d, values, scope, err)
	}
	if same, err := f.Scope(first, values); err != nil || !slices.Equal(same, scope) {
		t.Fatalf("%s, reset %d, %s: %s is not in %v: %v", f.Template(), f.Reset(), d, first, scope, err)
	}
	if f.Reset() == ResetNever {
		return
	}
	if before, err := f.Scope(first-1, values); first > d || err == nil && slices.Equal(before, scope) {
		t.Fatalf("%s, reset %d, %s: %s is not the first date of %v", f.Template(), f.Reset(), d, first, scope)
	}
}

// TestParseScopeRefuses what no date has.
func TestParseScopeRefuses(t *testing.T) {
	for reset, periods := range map[Reset][]string{
		ResetNever:      {"A/2026"},
		ResetYear:       {"", "26", "+202", "20260", "0000", "May", "2026-01"},
		ResetMonth:      {"2026", "2026-13", "2026-1", "2026-01-01"},
		ResetDay:        {"2026-01", "2026-02-30", "2026-1-1"},
		ResetWeek:       {"2026", "2026-W00", "2026-W54", "2025-W53", "2026-W1", "2026W01", "2026-W99999999"},
		ResetFiscalYear: {"2026", "FY", "FY26", "FY0000", "FY+202"},
	} {
		f, err := Define("{branch}-{year}-{month}-{day}-{week}-{week-year}-{fiscal-year:04-01}-{number}", reset)
		if err != nil {
			t.Fatal(err)
		}
		for _, period := range periods {
			if d, _, err := f.ParseScope([]string{period, "A"}); err == nil {
				t.Errorf("reset %d: %q begins on %s", reset, period, d)
			}
		}
		if _, _, err := f.ParseScope(nil); err == nil {
			t.Errorf("reset %d: no values are a scope", reset)
		}
	}
}

func BenchmarkParseScope(b *testing.B) {
	for reset := ResetYear; reset <= ResetWeek; reset++ {
		b.Run(fmt.Sprint(reset), func(b *testing.B) {
			f, err := Define("{branch}-{year}-{month}-{day}-{week}-{week-year}-{number}", reset)
			if err != nil {
				b.Fatal(err)
			}
			scope, err := f.Scope(DateOf(2026, time.November, 23), []string{"A"})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, _, err := f.ParseScope(scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
