package format_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/series/format"
)

// TestFiscalYearsOfIndia: rule 46 (b) of the CGST Rules allows 16 characters.
func TestFiscalYearsOfIndia(t *testing.T) {
	f, err := format.Define("INV/{fiscal-yy:04-01}-{fiscal-yy-end:04-01}/{number:5}", format.ResetFiscalYear)
	if err != nil {
		t.Fatal(err)
	}
	for day, text := range map[string]string{
		"2026-03-31": "INV/25-26/00001", "2026-04-01": "INV/26-27/00001", "2027-03-31": "INV/26-27/00001",
		"2000-04-01": "INV/00-01/00001", "2099-03-31": "INV/98-99/00001",
	} {
		got, err := f.Format(date(t, day), nil, 1)
		if err != nil || got != text || len(got) > 16 {
			t.Errorf("%s: %s, %v, want %s", day, got, err, text)
		}
		read, err := f.Parse(text)
		if again, _ := f.Format(read.Date, read.Values, read.Number); err != nil || again != text {
			t.Errorf("%s is read as %+v, %v", text, read, err)
		}
	}
	// The fiscal year 1999-00 begins before 2000, and 2099-00 ends after 2099.
	for _, day := range []string{"2000-03-31", "2099-04-01", "1999-12-31", "2100-01-01"} {
		_, err := f.Format(date(t, day), nil, 1)
		if wrong := (*format.Error)(nil); !errors.As(err, &wrong) || wrong.Field != "date" || !strings.Contains(wrong.Detail, "{fiscal-yy") {
			t.Errorf("%s: %v", day, err)
		}
	}
	for _, text := range []string{"INV/26-28/00001", "INV/26-26/00001", "INV/99-00/00001", "INV/26-27/00000"} {
		if read, err := f.Parse(text); err == nil {
			t.Errorf("%s is read as %+v", text, read)
		}
	}
}

// TestFiscalYearsTellTheirPeriods: with all sets of tokens, no text is that of two periods,
// and each is read back, on the days around which anything changes, in years a century apart.
func TestFiscalYearsTellTheirPeriods(t *testing.T) {
	var days []format.Date
	for _, year := range []int{1998, 1999, 2000, 2001, 2026, 2027, 2098, 2099, 2100, 2101, 2126} {
		days = append(days, format.DateOf(year, time.January, 1), format.DateOf(year, time.December, 31))
		for _, month := range []time.Month{2, 4, 7} {
			for _, day := range []int{0, 1, 5, 6} {
				days = append(days, format.DateOf(year, month, day))
			}
		}
	}
	tokens, accepted := []string{"fiscal-year", "fiscal-year-end", "fiscal-yy", "fiscal-yy-end"}, 0
	for set := range 1 << len(tokens) {
		for _, first := range []string{":04-06}", ":01-01}"} {
			for _, more := range []string{"", "{month}"} {
				template := more
				for i, token := range tokens {
					if set>>i&1 == 1 {
						template += "{" + token + first
					}
				}
				for reset := format.ResetNever; reset <= format.ResetFiscalYear; reset++ {
					if f, err := format.Define(template+"-{number}", reset); err == nil {
						accepted++
						checkPeriods(t, f, days)
					} else if reset == format.ResetFiscalYear && set != 0 {
						t.Errorf("%s: %v", template, err)
					}
				}
			}
		}
	}
	t.Log(accepted, "formats")
}

func checkPeriods(t *testing.T, f *format.Format, days []format.Date) {
	t.Helper()
	periods := map[string][]string{}
	for _, d := range days {
		text, err := f.Format(d, nil, 7)
		if err != nil {
			continue
		}
		scope, _ := f.Scope(d, nil)
		first, ok := periods[text]
		if ok && !slices.Equal(first, scope) {
			t.Fatalf("%s, reset %d: %s is of %v and of %v", f.Template(), f.Reset(), text, first, scope)
		}
		if ok {
			continue
		}
		periods[text] = scope
		read, _ := f.Parse(text)
		if again, err := f.Scope(read.Date, nil); err != nil || !slices.Equal(again, scope) {
			t.Fatalf("%s, reset %d: %s of %v is read as of %v, %v", f.Template(), f.Reset(), text, scope, again, err)
		}
		if begin, _, err := f.ParseScope(scope); err != nil || f.Reset() != format.ResetNever && begin > d {
			t.Fatalf("%s, reset %d: %v begins on %v, %v", f.Template(), f.Reset(), scope, begin, err)
		}
	}
}

// TestExamplesOfFiscalYearsHaveTexts: the two numbers of a refusal are real ones.
func TestExamplesOfFiscalYearsHaveTexts(t *testing.T) {
	for _, template := range []string{
		"{fiscal-yy:04-01}", "{fiscal-yy-end:04-01}", "{fiscal-yy:04-01}{fiscal-yy-end:04-01}", "{yy}{fiscal-yy:07-01}",
	} {
		_, err := format.Define(template+"-{number}", format.ResetMonth)
		var found *format.CollisionError
		if !errors.As(err, &found) {
			t.Fatalf("%s: %v", template, err)
		}
		never, _ := format.Define(template+"-{number}", format.ResetNever)
		for _, n := range []format.Numbered{found.One, found.Other} {
			if text, err := never.Format(n.Date, n.Values, n.Number); err != nil || text != found.Text {
				t.Errorf("%s: %+v has the text %q, %v, not %s", template, n, text, err, found.Text)
			}
		}
	}
}
