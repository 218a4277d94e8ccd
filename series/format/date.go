package format

import (
	"fmt"
	"time"
)

// Date is a day of the Gregorian calendar, without a zone, in days since 1970-01-01.
type Date int32

// secondsPerDay is the length of a day of UTC in Unix time.
const secondsPerDay = 24 * 60 * 60

// FirstDate and LastDate bound the dates that have a year of four digits.
var (
	FirstDate = DateOf(1, time.January, 1)
	LastDate  = DateOf(9999, time.December, 31)
)

// DateOf returns the day of a year, month and day; a day beyond the month's end is one of the next.
func DateOf(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

// ParseDate reads a date in the form 2026-12-31.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1 {
		return 0, &Error{Field: "date", Detail: "is not of the form 2026-12-31"}
	}
	return DateOf(t.Date()), nil
}

// DateAt returns the day of a time in nanoseconds since 1970 UTC, where clocks are ahead of
// UTC by so many seconds.
func DateAt(unixNano int64, ahead int32) Date {
	return DateOf(time.Unix(int64(ahead), unixNano).UTC().Date())
}

// String returns the date in the form 2026-12-31.
func (d Date) String() string { return d.time().Format(time.DateOnly) }

// Valid reports whether the date's year has four digits.
func (d Date) Valid() bool { return d >= FirstDate && d <= LastDate }

func (d Date) time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// Reset says when the numbers begin at 1 again.
type Reset uint8

// The periods that have numbers of their own.
const (
	ResetNever Reset = iota
	ResetYear
	ResetMonth
	ResetDay
	ResetWeek
	// ResetFiscalYear takes its first day from the tokens of the fiscal year.
	ResetFiscalYear
)

// fiscal is the first day of fiscal years.
type fiscal struct {
	month time.Month
	day   int
}

// year returns the year in which the fiscal year of a day begins, or ends.
func (f fiscal) year(t time.Time, end bool) int {
	year := t.Year()
	if t.Month() < f.month || t.Month() == f.month && t.Day() < f.day {
		year--
	}
	if end {
		year += f.later()
	}
	return year
}

// begin returns the first day of the fiscal year that begins, or ends, in a year.
func (f fiscal) begin(year int, end bool) Date {
	if end {
		year -= f.later()
	}
	return DateOf(year, f.month, f.day)
}

// later returns how many years after the one in which it begins a fiscal year ends.
func (f fiscal) later() int {
	if f.month == time.January && f.day == 1 {
		return 0
	}
	return 1
}

// layouts are the names of periods that are parts of a date.
var layouts = map[Reset]string{ResetYear: "2006", ResetMonth: "2006-01", ResetDay: time.DateOnly}

// period returns the name of the period that a day is in.
func (f *Format) period(t time.Time) string {
	switch f.reset {
	case ResetWeek:
		isoYear, isoWeek := t.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", isoYear, isoWeek)
	case ResetFiscalYear:
		return fmt.Sprintf("FY%04d", f.fiscal.year(t, f.byEnd))
	default:
		return t.Format(layouts[f.reset])
	}
}
