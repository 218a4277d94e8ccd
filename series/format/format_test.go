package format_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/test/cputime"
)

func date(t *testing.T, s string) format.Date {
	t.Helper()
	d, err := format.ParseDate(s)
	if err != nil || d.String() != s {
		t.Fatalf("%s: %v, %v", s, d, err)
	}
	return d
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		template string
		reset    format.Reset
		date     string
		values   []string
		number   int64
		text     string
		scope    string
	}{
		{
			"INV-{branch}-{year}-{number:6}{check:damm}", format.ResetYear, "2026-11-23",
			[]string{"BERLIN"},
			42,
			"INV-BERLIN-2026-0000426", "2026 BERLIN",
		},
		{"{number}", format.ResetNever, "2026-11-23", nil, 7, "7", ""},
		{"{number:3+}", format.ResetNever, "2026-11-23", nil, 7, "007", ""},
		{"{number:3+}", format.ResetNever, "2026-11-23", nil, 1234, "1234", ""},
		{"{yy}{month}{day}{number:4}", format.ResetDay, "2026-01-09", nil, 12, "2601090012", "2026-01-09"},
		{"{year}/{month}/{number}", format.ResetMonth, "2026-01-09", nil, 12, "2026/01/12", "2026-01"},
		{"{week-year}-W{week}-{number}", format.ResetWeek, "2027-01-01", nil, 3, "2026-W53-3", "2026-W53"},
		{"{fiscal-year:04-01}-{number}", format.ResetFiscalYear, "2026-03-31", nil, 3, "2025-3", "FY2025"},
		{"{fiscal-year-end:04-01}-{number}", format.ResetFiscalYear, "2026-04-01", nil, 3, "2027-3", "FY2027"},
		{"{fiscal-year-end:01-01}-{number}", format.ResetFiscalYear, "2026-04-01", nil, 3, "2026-3", "FY2026"},
		{"{fiscal-yy:04-01}/{number}", format.ResetFiscalYear, "2026-03-31", nil, 3, "25/3", "FY2025"},
		{"{fiscal-yy-end:04-06}/{number}", format.ResetFiscalYear, "2026-04-05", nil, 3, "26/3", "FY2026"},
		{"{fiscal-yy:04-06}-{fiscal-yy-end:04-06}/{number}", format.ResetFiscalYear, "2026-04-06", nil, 3, "26-27/3", "FY2026"},
		{"{fiscal-yy:01-01}{fiscal-yy-end:01-01}/{number}", format.ResetFiscalYear, "2026-04-06", nil, 3, "2626/3", "FY2026"},
		{"{fiscal-year:04-01}-{fiscal-year-end:04-01}/{number}", format.ResetFiscalYear, "2099-04-01", nil, 3, "2099-2100/3", "FY2099"},
		{"{fiscal-year:04-01}{fiscal-yy:04-01}{month}-{number}", format.ResetMonth, "2026-03-01", nil, 3, "20252503-3", "2026-03"},
		{"{shop:2}{till:3}{number:5}{check:luhn}", format.ResetNever, "2026-04-01", []string{"B7", "K01"}, 3, "B7K01000036", "B7 K01"},
		{"№ {number:2}", format.ResetNever, "2026-04-01", nil, 3, "№ 03", ""},
		{"RF{number:10}{check:mod97-10}/A", format.ResetNever, "2026-04-01", nil, 3, "RF000000000342/A", ""},
	} {
		f, err := format.Define(tt.template, tt.reset)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		text, err := f.Format(date(t, tt.date), tt.values, tt.number)
		if err != nil || text != tt.text {
			t.Errorf("%s: got %q, %v, want %q", tt.template, text, err, tt.text)
			continue
		}
		scope, err := f.Scope(date(t, tt.date), tt.values)
		if got := strings.Join(scope, " "); err != nil || got != tt.scope {
			t.Errorf("%s: got scope %q, %v, want %q", tt.template, got, err, tt.scope)
		}
		n, err := f.Parse(text)
		if err != nil || n.Number != tt.number || !slices.Equal(n.Values, tt.values) {
			t.Errorf("%s: %s is read as %+v, %v", tt.template, text, n, err)
			continue
		}
		if again, err := f.Scope(n.Date, n.Values); err != nil || !slices.Equal(again, scope) {
			t.Errorf("%s: %s is read as of %v, %v", tt.template, text, again, err)
		}
	}
}

func TestTemplatesThatAreWrong(t *testing.T) {
	for _, tt := range []struct {
		template string
		reset    format.Reset
		position int
		detail   string
	}{
		{"INV-", 0, 4, "no {number}"},
		{"{nunber:6}", 0, 10, "no {number}: it takes {nunber} for a value"},
		{"A{number", 0, 1, "not closed"},
		{"A}{number}", 0, 1, "closes nothing"},
		{"A\x07{number}", 0, 1, "invisible character"},
		{"AB\u200b{number}", 0, 2, "invisible character"},
		{"\xff{number}", 0, 0, "not UTF-8"},
		{"{number}{number:3}", 0, 8, "{number} twice"},
		{"{year}{year}{number}", 0, 6, "{year} twice"},
		{"{a}-{a}-{number}", 0, 4, "{a} twice"},
		{"{year:4}{number}", 0, 0, "an option"},
		{"{number:0}", 0, 0, "a width"},
		{"{number:06}", 0, 0, "a width"},
		{"{number:19}", 0, 0, "a width"},
		{"{number:}", 0, 0, "a width"},
		{"{Branch}-{number}", 0, 0, "small letters"},
		{"{}{number}", 0, 0, "1 to 16 characters"},
		{"{number}{check}", 0, 8, "one of the checks"},
		{"{check:luhn}{number}", 0, 0, "before the number"},
		{"{number:3}{check:luhn}{branch}", 0, 22, "behind the check"},
		{"{fiscal-year}-{number}", 0, 0, "first day"},
		{"{fiscal-year:02-29}-{number}", 0, 0, "first day"},
		{"{fiscal-year:04-01:end}-{number}", 0, 0, "first day"},
		{"A{fiscal-yy-end}-{number}", 0, 1, "as in {fiscal-yy-end:04-01}"},
		{"{fiscal-yy:04-01}{fiscal-yy:04-01}-{number}", 0, 17, "{fiscal-yy} twice"},
		{"{fiscal-yy:04-01}{fiscal-yy-end:04-06}-{number}", 0, 17, "another first day"},
		{"{year}-{number}", format.ResetFiscalYear, 15, "no {fiscal-year}"},
		{strings.Repeat("A", 120) + "{number}", 0, 120, "more than 128 bytes"},
		{strings.Repeat("A", 300), 0, 256, "longer"},
	} {
		_, err := format.Define(tt.template, tt.reset)
		var wrong *format.Error
		if !errors.As(err, &wrong) || wrong.Field != "format" || wrong.Position != tt.position || !strings.Contains(wrong.Detail, tt.detail) {
			t.Errorf("%q: got %v, want %q at %d", tt.template, err, tt.detail, tt.position)
		}
	}
}

func TestTemplatesThatCollide(t *testing.T) {
	for _, tt := range []struct {
		template string
		reset    format.Reset
		position int
	}{
		{"INV-{branch}{number}", 0, 4},
		{"{number}{branch}", 0, 0},
		{"{number}1{branch}", 0, 0},
		{"{branch}{month}{number}", 0, 0},
		{"{branch}0{number:3+}", 0, 0},
		{"{shop}{till}-{number}", 0, 0},
		{"{branch}{number}{check:verhoeff}", 0, 0},
		{"{branch}{number}-{year}-{check:mod97-10}", 0, 0},
		{"{number}", format.ResetYear, 8},
		{"{month}-{number}", format.ResetMonth, 16},
		{"{year}-{number}", format.ResetMonth, 15},
		{"{week-year}-{week}-{number}", format.ResetYear, 27},
		{"{year}-{week}-{number}", format.ResetWeek, 22},
		{"{year}-{fiscal-year:04-01}-{number}", format.ResetMonth, 35},
		{"{fiscal-yy:04-01}-{number}", format.ResetYear, 26},
		{"{fiscal-yy:04-06}-{month}-{number}", format.ResetMonth, 34},
		{"{fiscal-yy:04-01}-{fiscal-yy-end:04-01}-{number}", format.ResetMonth, 48},
		{"{number}{fiscal-yy:04-01}{a}", 0, 0},
		{"{a}\u212A{b}-{number}", 0, 0},
	} {
		_, err := format.Define(tt.template, tt.reset)
		var found *format.CollisionError
		if !errors.As(err, &found) || found.Position != tt.position || found.Text == "" || reflect.DeepEqual(found.One, found.Other) {
			t.Errorf("%q: got %v", tt.template, err)
		}
	}
}

// TestTemplatesThatDoNotCollide has formats in which a second way to read ends at a literal.
func TestTemplatesThatDoNotCollide(t *testing.T) {
	for _, tt := range []struct {
		template string
		reset    format.Reset
	}{
		{"{branch}A{number}", 0},
		{"{branch}-{number}", 0},
		{"{branch}{number:6}", 0},
		{"{branch:4}{number}", 0},
		{"{number}{year}", format.ResetYear},
		{"{week-year}-{week}-{month}-{day}-{number}", format.ResetYear},
		{"{year}{month}-{fiscal-year:04-01}-{number}", format.ResetFiscalYear},
		{"{yy}-{number}", format.ResetYear},
	} {
		if _, err := format.Define(tt.template, tt.reset); err != nil {
			t.Errorf("%q: %v", tt.template, err)
		}
	}
}

func TestWhatHasNoText(t *testing.T) {
	f, err := format.Define("{branch:3}-{yy}-{number:2}", format.ResetYear)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		date   string
		values []string
		number int64
		field  string
	}{
		{"2026-01-01", []string{"ABC"}, 0, "number"},
		{"2026-01-01", []string{"AB"}, 1, "scope"},
		{"2026-01-01", []string{"A-B"}, 1, "scope"},
		{"2026-01-01", nil, 1, "scope"},
		{"2100-01-01", []string{"ABC"}, 1, "date"},
		{"1999-12-31", []string{"ABC"}, 1, "date"},
	} {
		_, err := f.Format(date(t, tt.date), tt.values, tt.number)
		if wrong := (*format.Error)(nil); !errors.As(err, &wrong) || wrong.Field != tt.field {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	_, err = f.Format(date(t, "2026-01-01"), []string{"ABC"}, 100)
	if full := (*format.FullError)(nil); !errors.As(err, &full) || *full != (format.FullError{Number: 100, Most: 99}) || f.Most() != 99 {
		t.Errorf("a number of three digits: %v", err)
	}
	for _, text := range []string{"", "ABC-26-1", "ABC-26-001", "ABC-26-00", "AB-26-01", "ABC_26_01", strings.Repeat("A", 1000)} {
		if n, err := f.Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, n)
		}
	}
}

// TestValuesAreOfLettersAndDigits, so that nothing in them is invisible or looks like
// another one.
func TestValuesAreOfLettersAndDigits(t *testing.T) {
	f, err := format.Define("{branch}-{number}", format.ResetNever)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{
		"", "A B", "A\u00a0B", "A\u200bB", "\ufeffA", "A\u00adB", "A\u200d", "A\u202eB", "A\u0301", "A\ufe0f", "A\U000e0041",
		"\u3164", "\u0410", "\uff21", "A\x00", "A/B", "A\xff", strings.Repeat("A", 17),
	} {
		_, err := f.Format(date(t, "2026-01-01"), []string{v}, 1)
		if wrong := (*format.Error)(nil); !errors.As(err, &wrong) || wrong.Field != "scope" {
			t.Errorf("%+q: %v", v, err)
		}
	}
}

func TestTextsWithWrongDatesAndChecks(t *testing.T) {
	f, err := format.Define("{year}{month}{day}-{number}{check:damm}", format.ResetNever)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := f.Format(date(t, "2028-02-29"), nil, 572)
	if _, err := f.Parse(text); err != nil {
		t.Fatal(err)
	}
	for wrong, detail := range map[string]string{
		strings.Replace(text, "2028", "2027", 1): "date",
		strings.Replace(text, "0229", "1329", 1): "date",
		strings.Replace(text, "572", "573", 1):   "check digit",
		strings.Replace(text, "572", "752", 1):   "check digit",
	} {
		if _, err := f.Parse(wrong); err == nil || !strings.Contains(err.Error(), detail) {
			t.Errorf("%s, for %s: %v", wrong, text, err)
		}
	}
}

var tokens = []string{
	"{year}", "{yy}", "{month}", "{day}", "{week}", "{week-year}",
	"{fiscal-year:04-01}", "{fiscal-year-end:04-01}", "{fiscal-yy:04-01}", "{fiscal-yy-end:04-01}", "{a}", "{b}", "{c:2}",
	"-", "/", "A", "a", "1", "0", "é", "\u212A",
}

func templates() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 6).Draw(t, "parts")
		for i, p := range parts {
			if len(p) > 2 && slices.Contains(parts[:i], p) {
				parts[i] = "-"
			}
		}
		n := rapid.SampledFrom([]string{"{number}", "{number:4}", "{number:2+}"}).Draw(t, "number")
		parts = slices.Insert(parts, rapid.IntRange(0, len(parts)).Draw(t, "at"), n)
		return strings.Join(parts, "") +
			rapid.SampledFrom([]string{"", "", "{check:luhn}", "{check:mod97-10}", "{check:damm}-{e:1}"}).Draw(t, "check")
	})
}

func numbered(t *rapid.T, f *format.Format) format.Numbered {
	n := format.Numbered{
		Date:   format.Date(rapid.IntRange(11323, 47115).Draw(t, "date")), // 2001-01-01 to 2098-12-30
		Number: rapid.OneOf(rapid.Int64Range(1, 130), rapid.Int64Range(1, f.Most())).Draw(t, "number"),
	}
	n.Number = min(n.Number, f.Most())
	for i := range f.Names() {
		width := rapid.SampledFrom([]int{1, 2, 1, 2, 3}).Draw(t, "width")
		if name := f.Names()[i]; name == "c" || name == "e" {
			width = map[string]int{"c": 2, "e": 1}[name]
		}
		n.Values = append(n.Values, rapid.StringOfN(rapid.RuneFrom([]rune("Ak10")), width, width, -1).Draw(t, "value"))
	}
	return n
}

// TestEveryNumberHasItsText draws templates: one that is accepted gives texts that are read
// as they were written, and one that is refused has two numbers with one text.
func TestEveryNumberHasItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template, reset := templates().Draw(t, "template"), format.Reset(rapid.IntRange(0, 5).Draw(t, "reset"))
		f, err := format.Define(template, reset)
		if collision := (*format.CollisionError)(nil); errors.As(err, &collision) {
			collides(t, template, collision)
			return
		}
		if err != nil {
			return
		}
		for range 10 {
			n := numbered(t, f)
			text, err := f.Format(n.Date, n.Values, n.Number)
			if err != nil {
				t.Fatalf("%s, %+v: %v", template, n, err)
			}
			got, err := f.Parse(text)
			if err != nil || got.Number != n.Number || !slices.Equal(got.Values, n.Values) {
				t.Fatalf("%s: %s of %+v is read as %+v, %v", template, text, n, got, err)
			}
			want, _ := f.Scope(n.Date, n.Values)
			if scope, err := f.Scope(got.Date, got.Values); err != nil || !slices.Equal(scope, want) {
				t.Fatalf("%s: %s of %v is read as of %v, %v", template, text, want, scope, err)
			}
			other, err := f.Parse(respelled(t, text))
			if err == nil && (other.Number != n.Number || !slices.EqualFunc(other.Values, n.Values, strings.EqualFold)) {
				t.Fatalf("%s: %s of %+v is read as %+v in another spelling", template, text, n, other)
			}
		}
	})
}

// respelled is a text that differs in case alone.
func respelled(t *rapid.T, text string) string {
	return strings.Map(func(r rune) rune {
		for range rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "case") {
			r = unicode.SimpleFold(r)
		}
		return r
	}, text)
}

// collides checks that an example has two numbers. Only where many tokens of the date
// contradict each other it may be missing.
func collides(t *rapid.T, template string, c *format.CollisionError) {
	if c.Text == "" {
		if strings.Count(template, "{y")+strings.Count(template, "{week")+strings.Count(template, "{fiscal")+
			strings.Count(template, "{month")+strings.Count(template, "{day") < 2 {
			t.Fatalf("%s: no example", template)
		}
		return
	}
	if c.One.Number == c.Other.Number && slices.Equal(c.One.Values, c.Other.Values) && c.One.Date == c.Other.Date {
		t.Fatalf("%s: %+v is one number", template, c)
	}
}

func BenchmarkDefine(b *testing.B) {
	for b.Loop() {
		if _, err := format.Define("INV-{branch}-{year}-{number:6}{check:damm}", format.ResetYear); err != nil {
			b.Fatal(err)
		}
	}
}

// hardest is a template of which many pairs of readings go on to the end.
const hardest = "{number}{v0}{v1:2}{v2}{v3}IEN1DPWGHSZPWULdZSWEG0Ac{v4:1}XBLRX1QIeHYcUC0O1NBeUbB1KUYS"

// TestTheSearchForTwoReadingsIsSmall: a caller may give any template. Some took megabytes.
func TestTheSearchForTwoReadingsIsSmall(t *testing.T) {
	for _, template := range []string{hardest, "{a}A{b}A{c}A{p}A{e}A{f}A{number}", "{a}-{b}-{c}-{p}-{e}-{f}-{number}"} {
		if n := testing.AllocsPerRun(1, func() { _, _ = format.Define(template, format.ResetNever) }); n > 2_000 {
			t.Errorf("%s: %.0f allocations", template, n)
		}
	}
}

func BenchmarkDefineTheHardest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = format.Define(hardest, format.ResetNever)
	}
}

func BenchmarkFormat(b *testing.B) {
	f, err := format.Define("INV-{branch}-{year}-{number:6}{check:damm}", format.ResetYear)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = f.Format(20_000, []string{"BERLIN"}, 42)
	}
}

// TestALiteralOfManyLettersIsQuick: which bytes it has does not matter where it is not
// reached, and Define runs where other calls wait for it.
func TestALiteralOfManyLettersIsQuick(t *testing.T) {
	const letters = "QWERTYUIOPLKJHGFDSZXCVBNMqwertyuiopasdfghjkl"
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	quickest := func(literal string) time.Duration {
		least := time.Hour
		for range 5 {
			used := cputime.Thread()
			if _, err := format.Define("{a}{b}{c}{number:3}"+literal, format.ResetNever); err == nil {
				t.Fatal("two values side by side")
			}
			least = min(least, cputime.Thread()-used)
		}
		return least
	}
	one, many := quickest(strings.Repeat("Q", len(letters))), quickest(letters)
	if many > 5*one {
		t.Errorf("%s of processor time with many letters, %s with one", many, one)
	}
}
