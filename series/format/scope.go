package format

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseScope returns the first date of a scope that Scope gave, and its values. Where
// numbers never begin again, that is the first day of 2000. The error is a *Error.
func (f *Format) ParseScope(scope []string) (Date, []string, error) {
	wrong := &Error{Field: "scope", Detail: "is not one of the format"}
	date, values := DateOf(cycleStart, time.January, 1), scope
	if f.reset != ResetNever {
		if len(scope) == 0 {
			return 0, nil, wrong
		}
		values = scope[1:]
		var ok bool
		if date, ok = f.begin(scope[0]); !ok {
			return 0, nil, wrong
		}
	}
	if same, err := f.Scope(date, values); err != nil {
		return 0, nil, err
	} else if !slices.Equal(same, scope) {
		return 0, nil, wrong
	}
	return date, values, nil
}

// begin returns the first day of a period. Each is named after a year in which it is, or
// the one after or before.
func (f *Format) begin(period string) (Date, bool) {
	digits := strings.TrimPrefix(period, "FY")
	year, err := strconv.Atoi(digits[:min(4, len(digits))])
	if err != nil {
		return 0, false
	}
	for d := max(FirstDate, DateOf(year-1, time.January, 1)); d <= min(LastDate, DateOf(year+1, time.December, 31)); d++ {
		if f.period(d) == period {
			return d, true
		}
	}
	return 0, false
}
