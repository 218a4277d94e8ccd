package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scope returns the scope that a date and values belong to: the period, where numbers
// begin again, and the values, in the order of Names. The error is a *Error.
func (f *Format) Scope(d Date, values []string) ([]string, error) {
	if err := f.checkScope(d, values); err != nil {
		return nil, err
	}
	return f.scopeOf(d, values), nil
}

// scopeOf returns the scope of what was checked.
func (f *Format) scopeOf(d Date, values []string) []string {
	scope := make([]string, 0, len(values)+1)
	if f.reset != ResetNever {
		scope = append(scope, f.period(d.time()))
	}
	return append(scope, values...)
}

func (f *Format) checkScope(d Date, values []string) error {
	if err := f.checkDate(d); err != nil {
		return err
	}
	if len(values) != len(f.names) {
		return &Error{Field: "scope", Detail: fmt.Sprintf("has %d values, the format has %d", len(values), len(f.names))}
	}
	for i := range f.values {
		if err := f.values[i].checkValue(values[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkDate refuses a date that has no text.
func (f *Format) checkDate(d Date) error {
	if !d.Valid() {
		return &Error{Field: "date", Detail: "is not in the years 1 to 9999"}
	}
	t := d.time()
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case f.hasYear(p, t):
		case p.ofTwoDigits():
			return &Error{Field: "date", Detail: "is of a year outside 2000 to 2099, of which {" + p.text + "} is the end"}
		default:
			return &Error{Field: "date", Detail: "is in a week or fiscal year that has no name of four digits"}
		}
	}
	return nil
}

// hasYear reports whether a part can show its year of a date.
func (f *Format) hasYear(p *part, t time.Time) bool {
	if !p.kind.ofYear() {
		return true
	}
	y := f.whole(p.kind, t)
	if p.ofTwoDigits() {
		return y >= 2000 && y <= 2099
	}
	return y >= 1 && y <= 9999
}

func (p *part) checkValue(v string) error {
	if len(v) < p.least || len(v) > p.most {
		return &Error{Field: "scope", Detail: fmt.Sprintf("%s has %d bytes, not %d to %d", p.text, len(v), p.least, p.most)}
	}
	for i := range len(v) {
		if !p.allows(i, v[i]) {
			return &Error{Field: "scope", Detail: p.text + " is not of letters A to Z, a to z and digits"}
		}
	}
	return nil
}

// Format returns the text of a number. The errors are *Error and *FullError.
func (f *Format) Format(d Date, values []string, n int64) (string, error) {
	if err := f.checkScope(d, values); err != nil {
		return "", err
	}
	if n < 1 {
		return "", &Error{Field: "number", Detail: "is below 1"}
	}
	if n > f.most {
		return "", &FullError{Number: n, Most: f.most}
	}
	return f.text(d, values, n), nil
}

// text returns the text of what was checked.
func (f *Format) text(d Date, values []string, n int64) string {
	var b strings.Builder
	t, scope := d.time(), values
	for i := range f.parts {
		switch p := &f.parts[i]; p.kind {
		case literal:
			b.WriteString(p.text)
		case value:
			b.WriteString(values[0])
			values = values[1:]
		case number:
			if p.radix == 0 {
				pad(&b, n, p.least)
			} else {
				b.WriteString(f.scramble(p, f.scopeOf(d, scope), n))
			}
		case checkDigits:
			b.WriteString(f.check.digits(b.String()))
		default:
			pad(&b, int64(f.numeral(p, t)), p.least)
		}
	}
	return b.String()
}

func pad(b *strings.Builder, n int64, least int) {
	digits := strconv.FormatInt(n, 10)
	for range least - len(digits) {
		b.WriteByte('0')
	}
	b.WriteString(digits)
}

// numeral returns what a token of the date shows.
func (f *Format) numeral(p *part, t time.Time) int {
	n := f.whole(p.kind, t)
	if p.ofTwoDigits() {
		return n % 100
	}
	return n
}

// whole returns what a kind of token shows, with all digits of a year.
func (f *Format) whole(k kind, t time.Time) int {
	switch k {
	case month:
		return int(t.Month())
	case day:
		return t.Day()
	case week:
		_, isoWeek := t.ISOWeek()
		return isoWeek
	case weekYear:
		isoYear, _ := t.ISOWeek()
		return isoYear
	case fiscalYear, fiscalYearEnd:
		return f.fiscal.year(t, k == fiscalYearEnd)
	default:
		return t.Year()
	}
}
