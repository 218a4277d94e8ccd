package docid_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client/docid"
)

// wantError fails unless err is an *Error with this reason and field, and with a
// text that may stand in a message.
func wantError(t *testing.T, err error, reason, field string) {
	t.Helper()
	var e *docid.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an error with the reason %s", err, reason)
	}
	if e.Reason != reason || e.Field != field {
		t.Errorf("got %s for %s (%v), want %s for %s", e.Reason, e.Field, err, reason, field)
	}
	if text := e.Error(); !utf8.ValidString(text) || len(text) > 300 || !strings.HasPrefix(text, field+" ") || e.Detail == "" {
		t.Errorf("the error says %q", text)
	}
}

// build makes the id of a template as the vectors have it: etag 42, tag A, value 7.
func build(t docid.Template) string {
	switch t.Kind {
	case docid.ServerSide:
		return docid.ServerSideID(t.Text, 42, "A")
	case docid.Identity:
		return docid.IdentityID(t.Name, t.Separator, 7)
	case docid.Semantic:
		return t.Text
	default:
		return ""
	}
}

type vector struct {
	Template           string `json:"template"`
	TemplateRepeat     []any  `json:"template_repeat"`
	TemplateRepeatThen []any  `json:"template_repeat_then"`
	Sep                string `json:"sep"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	ID                 string `json:"id"`
	Error              string `json:"error"`
	Note               string `json:"note"`
}

// text returns the template, spelled out.
func (v vector) text() string {
	switch {
	case v.TemplateRepeat != nil:
		return repeated(v.TemplateRepeat)
	case v.TemplateRepeatThen != nil:
		return repeated(v.TemplateRepeatThen) + v.TemplateRepeatThen[2].(string)
	default:
		return v.Template
	}
}

func repeated(what []any) string {
	return strings.Repeat(what[0].(string), int(what[1].(float64)))
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/templates.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 30 {
		t.Fatalf("read %d cases, want 30 or more", len(file.Cases))
	}
	return file.Cases
}

func TestParseVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		text := v.text()
		t.Run(text[:min(len(text), 20)]+" "+v.Sep, func(t *testing.T) {
			got, err := docid.Parse(text, v.Sep)
			if v.Error != "" {
				field := "template"
				if v.Error == docid.ReasonInvalidSeparator {
					field = "separator"
				}
				wantError(t, err, v.Error, field)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind.String() != v.Kind || got.Name != v.Name || got.Text != text {
				t.Errorf("got %+v, want kind %s and name %q", got, v.Kind, v.Name)
			}
			if v.ID != "" && build(got) != v.ID {
				t.Errorf("built %q, want %q", build(got), v.ID)
			}
		})
	}
}

func TestParse(t *testing.T) {
	long := strings.Repeat("x", docid.MaxNameBytes)
	for _, c := range []struct {
		name, template, separator string
		want                      docid.Template
	}{
		{"Unicode white space is a GUID", "\u00a0\u2003\u3000\u0085", "", docid.Template{Kind: docid.GUID, Separator: "/"}},
		{"a zero-width space is no white space", "\u200b", "", docid.Template{Kind: docid.Semantic, Separator: "/"}},
		{"white space before a separator", " /", "", docid.Template{Kind: docid.ServerSide, Separator: "/"}},
		{"the separator is not at the end", "/x", "", docid.Template{Kind: docid.Semantic, Separator: "/"}},
		{"a separator of four bytes", "x😀", "😀", docid.Template{Kind: docid.ServerSide, Separator: "😀"}},
		{"a separator that folds", "xⒶ", "Ⓐ", docid.Template{Kind: docid.ServerSide, Separator: "Ⓐ"}},
		{"its other spelling in the template", "xⓐ", "Ⓐ", docid.Template{Kind: docid.ServerSide, Separator: "Ⓐ"}},
		{"its other spelling in the request", "xⒶ", "ⓐ", docid.Template{Kind: docid.ServerSide, Separator: "ⓐ"}},
		{"an identity with a separator that folds", "xⒶ|", "Ⓐ", docid.Template{Kind: docid.Identity, Name: "xⒶ", Separator: "Ⓐ"}},
		{"the longest name", long + "|", "", docid.Template{Kind: docid.Identity, Name: long, Separator: "/"}},
		{"U+FFFD is a character like others", "\uFFFD", "", docid.Template{Kind: docid.Semantic, Separator: "/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Text = c.template
			got, err := docid.Parse(c.template, c.separator)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, template string }{
		{"a name one byte too long", strings.Repeat("x", docid.MaxNameBytes+1) + "|"},
		{"a blank name", " |"},
		{"invalid UTF-8, semantic", "x\xff"},
		{"invalid UTF-8, server-side", "\xff/"},
		{"invalid UTF-8, identity", "\xff|"},
		{"a surrogate", "\xed\xa0\x80"},
		{"an overlong slash", "x\xc0\xaf"},
		{"a backslash alone", `\`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := docid.Parse(c.template, "/")
			wantError(t, err, docid.ReasonInvalidID, "template")
		})
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	for _, template := range []string{"", "users/", "users|", "users/ayende@example.org", "каталог/"} {
		if got := testing.AllocsPerRun(100, func() { _, _ = docid.Parse(template, "/") }); got != 0 {
			t.Errorf("Parse(%q) allocates %v times", template, got)
		}
	}
}

// FuzzParse checks that what Parse accepts makes a valid id, and that both spellings
// of a template are taken alike.
func FuzzParse(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"users/", "/"},
		{"users|", ""},
		{"users||", "/"},
		{"companies:", ":"},
		{"a|b", "/"},
		{"xⓐ", "Ⓐ"},
		{"xⒶ|", "ⓐ"},
		{"Ⅷ", "ⅷ"},
		{"us\\ers", "/"},
		{"\xff|", "\xff"},
		{"x\uFFFD", "\uFFFD"},
		{" |", "/"},
		{"|", "|"},
		{"x-", "-"},
		{"ſ😀", "😀"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, template, separator string) {
		parsed, err := docid.Parse(template, separator)
		other, otherErr := docid.Parse(docid.Fold(template), docid.Fold(separator))
		if err != nil {
			var e *docid.Error
			if !errors.As(err, &e) || !utf8.ValidString(e.Error()) {
				t.Fatalf("Parse(%q, %q) failed with %v", template, separator, err)
			}
			return
		}
		// Folding can only make a text too long.
		if otherErr == nil && (other.Kind != parsed.Kind || other.Name != docid.Fold(parsed.Name)) {
			t.Errorf("Parse(%q, %q) = %+v, folded %+v", template, separator, parsed, other)
		}
		if otherErr != nil && len(docid.Fold(template)) <= len(template) {
			t.Errorf("Parse(%q, %q) passes, folded it fails: %v", template, separator, otherErr)
		}
		checkBuilt(t, parsed)
	})
}

// checkBuilt fails unless the template makes a valid id.
func checkBuilt(t *testing.T, parsed docid.Template) {
	t.Helper()
	if parsed.Kind == docid.GUID {
		return
	}
	if id := build(parsed); docid.ValidateID(id, parsed.Separator) != nil {
		t.Errorf("%+v builds %q: %v", parsed, id, docid.ValidateID(id, parsed.Separator))
	}
	switch parsed.Kind {
	case docid.ServerSide:
		long := docid.ServerSideID(parsed.Text, 42, "ABCD")
		if fits := docid.CheckServerSide(parsed.Text, "ABCD") == nil; fits != (docid.ValidateID(long, parsed.Separator) == nil) {
			t.Errorf("CheckServerSide says %v of an id with %d bytes", fits, len(long))
		}
	case docid.Identity:
		if name, err := docid.ParseName(parsed.Text); err != nil || name != parsed.Name {
			t.Errorf("ParseName(%q) = %q, %v", parsed.Text, name, err)
		}
	}
}
