package format_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/series/format"
)

// TestMostWithin compares the greatest number of a length with the texts themselves.
func TestMostWithin(t *testing.T) {
	for _, template := range []string{
		"{number}", "{number:3}", "{number:3+}", "Größe-{branch}-{yy}/{number:2+}", "{branch:3}{number:2}", "A{number:2+}{check:mod97-10}",
	} {
		f, err := format.Define(template, format.ResetNever)
		if err != nil {
			t.Fatal(err)
		}
		values, lengths := []string{}, f.Widths()
		for i := range lengths {
			lengths[i] = min(lengths[i], 5)
			values = append(values, strings.Repeat("x", lengths[i]))
		}
		for length := range 30 {
			most := f.MostWithin(length, lengths)
			fits := func(n int64) bool {
				text, err := f.Format(format.DateOf(2026, time.May, 1), values, n)
				return err == nil && utf8.RuneCountInString(text) <= length
			}
			if most > 0 && !fits(most) || fits(most+1) || most == 0 && fits(1) {
				t.Errorf("%s within %d: %d", template, length, most)
			}
		}
	}
}
