package format

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/client/docid"
)

// ParseScope returns the first date of a scope that Scope gave, and its values. Where
// numbers never begin again, that is the first day from 2000 on that has a text. The
// period may have small letters. The error is a *Error.
func (f *Format) ParseScope(scope []string) (Date, []string, error) {
	wrong := &Error{Field: "scope", Detail: "is not one of the format"}
	date, values := max(DateOf(cycleStart, time.January, 1), f.first()), scope
	if f.reset != ResetNever {
		if len(scope) == 0 {
			return 0, nil, wrong
		}
		begin, ok := f.begin(docid.Fold(scope[0]))
		if !ok {
			return 0, nil, wrong
		}
		// The first days of a period may have no text.
		date, values = max(begin, f.first()), scope[1:]
	}
	if same, err := f.Scope(date, values); err != nil {
		return 0, nil, err
	} else if !slices.EqualFunc(same, scope, func(a, b string) bool { return docid.Fold(a) == docid.Fold(b) }) {
		return 0, nil, wrong
	}
	return date, values, nil
}

// begin returns the first day of a period, if its folded name has the form of one.
func (f *Format) begin(period string) (Date, bool) {
	if layout := layouts[f.reset]; layout != "" {
		t, err := time.Parse(layout, period)
		return DateOf(t.Date()), err == nil
	}
	year, rest, _ := strings.Cut(strings.TrimPrefix(period, "fy"), "-w")
	t, err := time.Parse("2006", year)
	if err != nil {
		return 0, false
	}
	if f.reset == ResetFiscalYear {
		return f.fiscal.begin(t.Year(), f.byEnd), true
	}
	var week int
	if _, err := fmt.Sscanf(rest, "%2d", &week); err != nil {
		return 0, false
	}
	// January 4 is always in week 1, and a week begins on a Monday.
	fourth := time.Date(t.Year(), time.January, 4, 0, 0, 0, 0, time.UTC)
	return DateOf(t.Year(), time.January, 4-int(fourth.Weekday()+6)%7+7*(week-1)), true
}

// first returns the first date that has a text, as checkDate judges it.
func (f *Format) first() Date {
	first := FirstDate
	for i := range f.parts {
		p, least := &f.parts[i], 1
		if p.ofTwoDigits() {
			least = 2000
		}
		switch {
		case p.kind.ofFiscal():
			first = max(first, f.fiscal.begin(least, p.kind == fiscalYearEnd))
		case p.kind.ofYear():
			first = max(first, DateOf(least, time.January, 1))
		}
	}
	return first
}
