package format_test

import (
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/series/format"
)

// TestSamplesHaveTexts: the samples of all values are values, also of a width.
func TestSamplesHaveTexts(t *testing.T) {
	for template, want := range map[string]string{
		"{number}": "7", "{branch}-{number:3}": "BRANCH-007", "{branch:3}/{till:2}/{number}": "BRA/TI/7",
		"{cost-unit-no:16}{number:2}": "COSTUNITNOCOSTUN07", "{a:5}-{b9}-{number}": "AAAAA-B9-7",
	} {
		f, err := format.Define(template, format.ResetNever)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := f.Format(format.DateOf(2026, time.May, 1), f.Samples(), 7); err != nil || text != want {
			t.Errorf("%s: %q, %v, want %q", template, text, err, want)
		}
	}
}

// TestTheDayOnWhichNumbersBeginAgain, of each period; the last period of all has none.
func TestTheDayOnWhichNumbersBeginAgain(t *testing.T) {
	day, last := format.DateOf(2026, time.February, 14), format.DateOf(9999, time.December, 30)
	const all = "{year}{month}{day}{week-year}{week}{fiscal-year:04-01}-{number}"
	for reset, want := range map[format.Reset][]string{
		format.ResetNever: {"", ""}, format.ResetYear: {"2027-01-01", ""}, format.ResetMonth: {"2026-03-01", ""},
		format.ResetDay: {"2026-02-15", "9999-12-31"}, format.ResetWeek: {"2026-02-16", ""}, format.ResetFiscalYear: {"2026-04-01", ""},
	} {
		f, err := format.Define(all, reset)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range []format.Date{day, last} {
			text := ""
			if next, ok := f.BeginsAgain(d); ok {
				text = next.String()
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d: %q, want %q", reset, got, want)
		}
	}
}
