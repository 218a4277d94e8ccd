package docid_test

import (
	"testing"

	"github.com/idnode/idnode/client/docid"
)

func TestParseSeparator(t *testing.T) {
	if got, err := docid.ParseSeparator(""); err != nil || got != docid.DefaultSeparator {
		t.Errorf("an empty separator is %q, %v", got, err)
	}
	for _, s := range []string{"/", ":", "_", ".", "~", "+", "$", "#", "@", "–", "·", "§", "€", "→", "½", "Ⓐ", "ⓐ", "Ⅷ", "😀", "؟", "、"} {
		if got, err := docid.ParseSeparator(s); err != nil || got != s {
			t.Errorf("ParseSeparator(%q) = %q, %v", s, got, err)
		}
	}
}

func TestParseSeparatorRefuses(t *testing.T) {
	for _, c := range []struct{ name, separator string }{
		{"two characters", "//"},
		{"a letter", "x"},
		{"a letter beyond ASCII", "я"},
		{"a modifier letter", "ʰ"},
		{"an ideograph", "字"},
		{"a digit", "5"},
		{"a digit beyond ASCII", "٥"},
		{"a dash", "-"},
		{"a space", " "},
		{"a space beyond ASCII", "\u00a0"},
		{"a line separator", "\u2028"},
		{"a tab", "\t"},
		{"NUL", "\x00"},
		{"DEL", "\x7f"},
		{"a C1 control", "\u0085"},
		{"a backslash", `\`},
		{"a pipe", "|"},
		{"a combining mark", "\u0301"},
		{"an enclosing mark", "\u20dd"},
		{"a zero-width space", "\u200b"},
		{"a byte order mark", "\ufeff"},
		{"private use", "\ue000"},
		{"unassigned", "\u0378"},
		{"a noncharacter", "\uffff"},
		{"invalid UTF-8", "\xff"},
		{"half a character", "\xe2\x82"},
		{"the replacement character", "\ufffd"},
		{"a character with a mark", "/\u0301"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := docid.ParseSeparator(c.separator)
			wantError(t, err, docid.ReasonInvalidSeparator, "separator")
			_, err = docid.Parse("users|", c.separator)
			wantError(t, err, docid.ReasonInvalidSeparator, "separator")
			wantError(t, docid.ValidateID("users", c.separator), docid.ReasonInvalidSeparator, "separator")
			wantError(t, docid.ValidateTag("users", c.separator), docid.ReasonInvalidSeparator, "separator")
		})
	}
}
