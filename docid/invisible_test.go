package docid_test

import (
	"testing"
	"unicode"

	"github.com/idnode/idnode/docid"
)

// TestInvisibleIsTheDatabase: by Unicode, the ignorable characters are those of the three
// tables less some of Cf, which are looked for too.
func TestInvisibleIsTheDatabase(t *testing.T) {
	if unicode.Version != "15.0.0" {
		t.Skip("the unicode package is of version " + unicode.Version)
	}
	for r := range unicode.MaxRune + 1 {
		want := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if got, found := docid.FirstInvisible("a" + string(r)); found != want || found && got != r {
			t.Fatalf("U+%04X: %v, U+%04X", r, found, got)
		}
	}
}

func TestFirstInvisible(t *testing.T) {
	for text, want := range map[string]rune{
		"": 0, "order/4711 é 数 \xff": 0, "a\u200bb": 0x200B, "\ufeffa": 0xFEFF, "a\u00ad\u200d": 0xAD, "a\ufe0f": 0xFE0F, "a\nb": '\n', "\u3164": 0x3164,
		"a\U000e0041": 0xE0041,
	} {
		if got, found := docid.FirstInvisible(text); got != want || found != (want != 0) {
			t.Errorf("%+q: U+%04X, %t", text, got, found)
		}
	}
}
