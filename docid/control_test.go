package docid_test

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/idnode/idnode/docid"
)

// The set is that of the Unicode standard.
func TestFirstControlOfEachCharacter(t *testing.T) {
	for r := range unicode.MaxRune {
		want := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		if got, found := docid.FirstControl("a" + string(r)); found != want || found && got != r {
			t.Fatalf("U+%04X: %v, U+%04X", r, found, got)
		}
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"users/ü": "users/ü", "a\r\nb": `a\u000d\u000ab`, "\x1b[2J": `\u001b[2J`, "x\u202egnp": `x\u202egnp`, "\u009b\u2028": `\u009b\u2028`,
		"\xff": "\xff", "": "",
	} {
		if got := docid.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

// Escaped JSON has the same value.
func TestEscapeOfJSON(t *testing.T) {
	name := "\x00\t\r\n\x1b\x7f\u0085\u061c\u200f\u2029\u202e\u2066ü"
	raw, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	text := docid.Escape(string(raw))
	if _, found := docid.FirstControl(text); found {
		t.Errorf("%q has a control character", text)
	}
	var got string
	if err := json.Unmarshal([]byte(text), &got); err != nil || got != name {
		t.Errorf("%s is %q: %v", text, got, err)
	}
}
