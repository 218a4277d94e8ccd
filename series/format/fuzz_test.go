package format_test

import (
	"strings"
	"testing"

	"github.com/idnode/idnode/series/format"
)

// FuzzParse: whatever the template and the text are, a text that is read is the text of
// what was read. The letters of scrambled numbers alone have no case.
func FuzzParse(f *testing.F) {
	f.Add("INV-{branch}-{year}-{number:6}{check:damm}", uint8(1), "INV-BERLIN-2026-0000426")
	f.Add("{yy}{month}{day}{number:4}", uint8(3), "2601090012")
	f.Add("{week-year}-W{week}-{number}", uint8(4), "2026-W53-3")
	f.Add("{fiscal-year:04-01:end}{a}-{b:2}{number:3+}{check:mod97-10}", uint8(5), "2026X-AA00112")
	f.Add("{number}{check:verhoeff}", uint8(0), "2363")
	f.Add("W{scrambled:4}", uint8(0), "W00ab")
	f.Add("{a}-{scrambled-digits:6}", uint8(0), "x-000017")
	f.Fuzz(func(t *testing.T, template string, reset uint8, text string) {
		defined, err := format.Define(template, format.Reset(reset))
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		n, err := defined.Parse(text)
		if err != nil {
			return
		}
		again, err := defined.Format(n.Date, n.Values, n.Number)
		if same := again == text || defined.Scrambled() && strings.EqualFold(again, text); err != nil || !same {
			t.Fatalf("%s: %q is read as %+v, which is %q, %v", template, text, n, again, err)
		}
	})
}
