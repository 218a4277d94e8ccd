package format

import (
	"crypto/cipher"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
)

// Format is a template that was read and found to give every number its own text.
type Format struct {
	template string
	reset    Reset
	parts    []part
	// values are the parts that show scope values, which have these names.
	values []part
	names  []string
	fiscal fiscal
	// byEnd means that fiscal years are named after the year in which they end.
	byEnd bool
	check check
	most  int64
	// secret is what scrambled numbers depend on; nil without one.
	secret cipher.Block
}

// dateTokens has the tokens of the date, and their widths.
var dateTokens = map[string]part{
	"year": {kind: year, least: 4}, "yy": {kind: year, least: 2}, "month": {kind: month, least: 2}, "day": {kind: day, least: 2},
	"week": {kind: week, least: 2}, "week-year": {kind: weekYear, least: 4},
	"fiscal-year": {kind: fiscalYear, least: 4}, "fiscal-year-end": {kind: fiscalYearEnd, least: 4},
	"fiscal-yy": {kind: fiscalYear, least: 2}, "fiscal-yy-end": {kind: fiscalYearEnd, least: 2},
}

// Define reads a template, of a series whose numbers begin again as told. The errors are a *Error
// with the position, and a *CollisionError with two numbers that would have one text.
func Define(template string, reset Reset) (*Format, error) {
	if reset > ResetFiscalYear {
		return nil, &Error{Field: "reset", Detail: "is unknown"}
	}
	f := &Format{template: template, reset: reset}
	for _, step := range []func() error{f.read, f.rules, f.readTwoWays, f.periodUnknown} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Names returns the scope values' names, in the order of the template, to be read only.
func (f *Format) Names() []string { return f.names }

// Most returns the greatest number that has a text.
func (f *Format) Most() int64 { return f.most }

// Dated reports whether a date decides anything: the text, or where numbers begin again.
func (f *Format) Dated() bool {
	return f.reset != ResetNever || slices.ContainsFunc(f.parts, func(p part) bool { return p.kind.ofDate() })
}

func wrong(at int, detail string, args ...any) error {
	return &Error{Field: "format", Position: at, Detail: fmt.Sprintf(detail, args...)}
}

func (f *Format) read() error {
	switch {
	case len(f.template) > MaxTemplateBytes:
		return wrong(MaxTemplateBytes, "is longer than %d bytes", MaxTemplateBytes)
	case !utf8.ValidString(f.template):
		return wrong(0, "is not UTF-8")
	}
	if r, found := docid.FirstInvisible(f.template); found {
		return wrong(strings.IndexRune(f.template, r), "has an invisible character")
	}
	for at := 0; at < len(f.template); {
		rest := f.template[at:]
		end := strings.IndexAny(rest, "{}")
		switch {
		case end < 0:
			end = len(rest)
			fallthrough
		case end > 0:
			f.parts = append(f.parts, part{kind: literal, at: at, text: rest[:end], least: end, most: end})
			at += end
			continue
		case rest[0] == '}':
			return wrong(at, "has a brace that closes nothing")
		}
		token, _, ok := strings.Cut(rest[1:], "}")
		if !ok {
			return wrong(at, "has a brace that is not closed")
		}
		name, option, hasOption := strings.Cut(token, ":")
		if slices.ContainsFunc(f.parts, func(p part) bool { return p.kind != literal && p.text == name }) {
			return wrong(at, "has {%s} twice", name)
		}
		p, err := f.token(at, name, option, hasOption)
		if err != nil {
			return err
		}
		p.at, p.text = at, name
		f.parts = append(f.parts, p)
		at += len(token) + 2
	}
	return nil
}

// token reads what is between braces.
func (f *Format) token(at int, name, option string, hasOption bool) (part, error) {
	p, known := dateTokens[name]
	p.most = p.least
	switch {
	case p.kind.ofFiscal():
		return p, f.fiscalOption(at, name, option)
	case known && hasOption:
		return p, wrong(at, "has an option that {%s} does not know", name)
	case known:
		return p, nil
	case name == "number" || scrambles[name].radix > 0:
		if f.has(number) {
			return p, wrong(at, "has two numbers")
		}
		if name == "number" {
			return f.numberToken(at, option, hasOption)
		}
		return f.scrambledToken(at, name, option)
	case name == "check":
		return f.checkToken(at, option)
	default:
		return f.valueToken(at, name, option, hasOption)
	}
}

func (f *Format) has(k kind) bool {
	return slices.ContainsFunc(f.parts, func(p part) bool { return p.kind == k })
}

// fiscalOption reads the first day of the fiscal year, of which a format has one.
func (f *Format) fiscalOption(at int, name, option string) error {
	// A leap year is no year to begin on its extra day.
	t, err := time.Parse(time.DateOnly, "2001-"+option)
	if err != nil {
		return wrong(at, "needs the first day of the fiscal year, as in {%s:04-01}", name)
	}
	first := fiscal{month: t.Month(), day: t.Day()}
	if f.fiscal != (fiscal{}) && f.fiscal != first {
		return wrong(at, "has another first day of the fiscal year than before")
	}
	f.fiscal = first
	return nil
}

// width reads a width without sign or leading zero.
func width(s string, most int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= most && strconv.Itoa(n) == s
}

func (f *Format) numberToken(at int, option string, hasOption bool) (part, error) {
	f.most = maxNumber
	if !hasOption {
		return part{kind: number, least: 1, most: MaxDigits}, nil
	}
	digits, grows := strings.CutSuffix(option, "+")
	n, ok := width(digits, MaxDigits)
	if !ok {
		return part{}, wrong(at, "needs a width from 1 to %d, as in {number:6} or {number:6+}", MaxDigits)
	}
	p := part{kind: number, least: n, most: n}
	if grows {
		p.most = MaxDigits
		return p, nil
	}
	f.most = greatest(n)
	return p, nil
}

func (f *Format) scrambledToken(at int, name, option string) (part, error) {
	of := scrambles[name]
	n, ok := width(option, of.most)
	if !ok || n < of.least {
		return part{}, wrong(at, "needs a width from %d to %d, as in {%s:8}", of.least, of.most, name)
	}
	f.most = int64(min(power(of.radix, n)-1, maxNumber))
	return part{kind: number, least: n, most: n, radix: of.radix}, nil
}

func (f *Format) checkToken(at int, option string) (part, error) {
	for _, c := range checks {
		if c.name == option {
			f.check = c
			return part{kind: checkDigits, least: c.width, most: c.width}, nil
		}
	}
	return part{}, wrong(at, "needs one of the checks luhn, damm, verhoeff, mod11-10 and mod97-10, as in {check:damm}")
}

func (f *Format) valueToken(at int, name, option string, hasOption bool) (part, error) {
	if hint, found := likeDate(name); found {
		return part{}, wrong(at, "has {%s}, which is no token: %s", name, hint)
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (i == 0 || !isDigit(c) && c != '-') {
			return part{}, wrong(at, "has a name that is not of small letters, digits and -")
		}
	}
	if name == "" || len(name) > MaxValueBytes {
		return part{}, wrong(at, "has a name that is not of 1 to %d characters", MaxValueBytes)
	}
	p := part{kind: value, text: name, least: 1, most: MaxValueBytes}
	if hasOption {
		n, ok := width(option, MaxValueBytes)
		if !ok {
			return part{}, wrong(at, "needs a width from 1 to %d, as in {branch:3}", MaxValueBytes)
		}
		p.least, p.most = n, n
	}
	f.values, f.names = append(f.values, p), append(f.names, name)
	return p, nil
}

func (f *Format) rules() error {
	if !f.has(number) {
		if len(f.names) > 0 {
			return wrong(len(f.template), "has no {number}: it takes {%s} for a value that callers give", f.names[0])
		}
		return wrong(len(f.template), "has no {number}")
	}
	if f.reset == ResetFiscalYear && f.fiscal == (fiscal{}) {
		return wrong(len(f.template), "has no {fiscal-year} or {fiscal-yy}, by which the numbers begin again")
	}
	f.byEnd = !f.has(fiscalYear)
	length, counted, checked := 0, false, false
	for i := range f.parts {
		p := &f.parts[i]
		length += p.most
		counted = counted || p.kind == number
		switch {
		case length > MaxTextBytes:
			return wrong(p.at, "can give texts of more than %d bytes", MaxTextBytes)
		case p.kind == checkDigits && !counted:
			return wrong(p.at, "has the check before the number")
		case p.kind == checkDigits && f.counter().radix > 10 && f.check.name != "mod97-10":
			return wrong(p.at, "has a check that counts digits alone, and a number of letters: mod97-10 counts them")
		case checked && p.varies():
			// The place of the check would be known only after the text was read.
			return wrong(p.at, "has a token of no fixed width behind the check")
		}
		checked = checked || p.kind == checkDigits
	}
	return nil
}
