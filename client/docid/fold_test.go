package docid_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"nothing to do", "users/ayende@example.org", "users/ayende@example.org"},
		{"ASCII", "Users/AZ[@`{az", "users/az[@`{az"},
		{"Kelvin sign", "\u212Aelvin", "kelvin"},
		{"Ångström sign", "\u212Bngström", "ångström"},
		{"long s", "ſ", "s"},
		{"capital sharp s becomes the small one, not ss", "STRAẞE", "straße"},
		{"small sharp s stays", "straße", "straße"},
		{"dotted capital I stays", "İ", "İ"},
		{"dotless small i stays", "ı", "ı"},
		{"both sigmas", "ΣΊΣΥΦΟΣ Σίσυφος", "σίσυφοσ σίσυφοσ"},
		{"Cherokee folds to its capitals", "\uAB70\u13F8", "\u13A0\u13F0"},
		{"Cherokee capitals stay", "\u13A0\u13F0", "\u13A0\u13F0"},
		{"circled letter", "Ⓐ", "ⓐ"},
		{"Roman numeral", "Ⅷ", "ⅷ"},
		{"grows", "Ⱥ", "ⱥ"},
		{"shrinks", "Ω", "ω"},
		{"beyond the basic plane", "𐐀𞤀", "𐐨𞤢"},
		{"titlecase digraph", "ǅ", "ǆ"},
		{"micro sign", "µ", "μ"},
		{"combining iota", "\u0345", "ι"},
		{"not normalised", "E\u0301É", "e\u0301é"},
		{"invalid UTF-8 stays", "A\xffB\xc3", "a\xffb\xc3"},
		{"U+FFFD stays", "A\uFFFD", "a\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := docid.Fold(c.in); got != c.want {
				t.Errorf("Fold(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestFoldAllocations(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     float64
	}{
		{"folded ASCII", "users/ayende@example.org", 0},
		{"folded Cyrillic", "каталог/пользователь", 0},
		{"ASCII that folds", "Users/Ayende@example.org", 1},
		{"Cyrillic that folds", "Каталог/Пользователь", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, func() { docid.Fold(c.in) }); got != c.want {
				t.Errorf("Fold(%q) allocates %v times, want %v", c.in, got, c.want)
			}
		})
	}
}

// FuzzFold checks what holds of folding whatever the text.
func FuzzFold(f *testing.F) {
	for _, seed := range []string{
		"", "users", "Users/3", "ſ\u212Aẞİı", "ΣΊΣΥΦΟΣ", "\uAB70\u13A0", "ȺȾ", "Ⓐ5", "A\xff\xc3", "\u0345", "𐐀", "\x00\x7f\u0080",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		folded := docid.Fold(s)
		if again := docid.Fold(folded); again != folded {
			t.Errorf("Fold(%q) = %q, and folded again %q", s, folded, again)
		}
		if utf8.ValidString(s) != utf8.ValidString(folded) {
			t.Errorf("Fold(%q) = %q: only one of them is valid UTF-8", s, folded)
		}
		if utf8.RuneCountInString(s) != utf8.RuneCountInString(folded) {
			t.Errorf("Fold(%q) = %q: the number of characters differs", s, folded)
		}
		if 2*len(folded) > 3*len(s) {
			t.Errorf("Fold(%q) has %d bytes, more than half again of %d", s, len(folded), len(s))
		}
		if unicode.Version == "15.0.0" && utf8.ValidString(s) && !strings.EqualFold(s, folded) {
			t.Errorf("Fold(%q) = %q, which EqualFold does not take for equal", s, folded)
		}
		for i := range min(len(s), 64) {
			head, tail := s[:i], s[i:]
			if utf8.RuneStart(tail[0]) && docid.Fold(head)+docid.Fold(tail) != folded {
				t.Errorf("folding %q and %q apart differs from folding them together", head, tail)
			}
		}
	})
}
