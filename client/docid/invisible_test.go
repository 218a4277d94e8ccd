package docid_test

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/idnode/idnode/client/docid"
)

// TestInvisibleIsTheDatabase: by Unicode, the ignorable characters are those of the three
// tables less some of Cf, which are looked for too.
func TestInvisibleIsTheDatabase(t *testing.T) {
	if unicode.Version != "15.0.0" {
		t.Skip("the unicode package is of version " + unicode.Version)
	}
	for r := range unicode.MaxRune + 1 {
		want := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector)
		if got, found := docid.FirstInvisible("a" + string(r)); found != want || found && got != r {
			t.Fatalf("U+%04X: %v, U+%04X", r, found, got)
		}
	}
}

func TestFirstInvisible(t *testing.T) {
	for text, want := range map[string]rune{
		"": 0, "order/4711 é 数 \xff": 0, "a\u200bb": 0x200B, "\ufeffa": 0xFEFF, "a\u00ad\u200d": 0xAD, "a\ufe0f": 0xFE0F,
		"a\nb": '\n', "\u3164": 0x3164,
		"a\U000e0041": 0xE0041,
	} {
		if got, found := docid.FirstInvisible(text); got != want || found != (want != 0) {
			t.Errorf("%+q: U+%04X, %t", text, got, found)
		}
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"users/ü": "users/ü", "a\r\nb": `a\u000d\u000ab`, "\x1b[2J": `\u001b[2J`, "x\u202egnp": `x\u202egnp`, "\u009b\u2028": `\u009b\u2028`,
		"ord\u200bers": `ord\u200bers`, "a\u00ad\ufeff": `a\u00ad\ufeff`, "\U000e0041": `\udb40\udc41`,
		"\xff": "\xff", "": "",
	} {
		if got := docid.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

// Escaped JSON has the same value.
func TestEscapeOfJSON(t *testing.T) {
	name := "\x00\t\r\n\x1b\x7f\u0085\u061c\u200f\u2029\u202e\u2066\u00ad\u200b\ufeff\U000e0041ü"
	raw, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	text := docid.Escape(string(raw))
	if _, found := docid.FirstInvisible(text); found {
		t.Errorf("%q has an invisible character", text)
	}
	var got string
	if err := json.Unmarshal([]byte(text), &got); err != nil || got != name {
		t.Errorf("%s is %q: %v", text, got, err)
	}
}
