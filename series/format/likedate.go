package format

import (
	"slices"
	"strings"
)

// dateName is what people write for a part of a date or a time.
type dateName struct {
	// means says which token is meant.
	means string
	// words are names, and begins are what longer names begin with.
	words, begins []string
}

const (
	meansYear   = "the year is {year}, and {yy} with two digits"
	meansMonth  = "the month is {month}"
	meansDay    = "the day of the month is {day}"
	meansDate   = "the date is {year}-{month}-{day}"
	meansFiscal = "a fiscal year is {fiscal-year:04-01}, or {fiscal-yy:04-01}-{fiscal-yy-end:04-01}"
	meansTime   = "the time of day has none"
)

var dateNames = []dateName{
	{meansYear, []string{"y", "yr", "jj", "jjjj", "aaaa"}, []string{"year"}},
	{meansMonth, []string{"m", "mon", "mth"}, []string{"month"}},
	{"the week is {week}, and {week-year} is its year", []string{"w", "ww", "woy", "kw"}, []string{"week"}},
	{meansDay, []string{"d", "day", "days", "dayname", "dow", "mday", "wday"}, []string{"dayof"}},
	{"the day of the year has none; {month}{day} tells it", []string{"doy", "yday", "julian", "julianday"}, nil},
	{meansDate, []string{"date", "dates", "datetime", "today", "now", "ymd", "dmy", "mdy", "ym"}, nil},
	{meansFiscal, []string{"fiscal", "tfy", "finyear", "taxyear"}, []string{
		"fy", "fiscalyear", "fiscalyy", "fiscalmonth", "fiscalquarter", "fiscalweek", "fiscalperiod", "financialyear",
	}},
	{"the quarter has none; callers can give it as a value, such as {period}", []string{"q", "qq", "qtr"}, []string{"quarter"}},
	{meansTime, []string{
		"h", "h12", "h24", "hour", "hours", "hour12", "hour24", "min", "mins", "minute", "minutes", "sec", "secs", "second", "seconds", "ss",
		"hms", "time", "timestamp", "timeofday", "epoch", "unix", "unixtime",
	}, nil},
}

// ofDocument has what people write before a part of the document's date.
var ofDocument = []string{"invoice", "order", "document", "doc", "bill", "issue", "current", "full", "long", "short", "iso", "calendar"}

// likeDate reports whether a name looks like a part of a date, in any case and with any
// separators, and what is meant. As a value it would be a date that callers must give, and
// that nobody compares with the document's.
func likeDate(name string) (means string, found bool) {
	letters := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case strings.ContainsRune("-_./: ", r):
			return -1
		}
		return r
	}, name)
	if means, found = likePattern(letters); found {
		return means, true
	}
	if means, found = likeWord(letters); found {
		return means, true
	}
	for _, before := range ofDocument {
		if word, ok := strings.CutPrefix(letters, before); ok && (word == "day" || len(word) > len("day")) {
			return likeWord(word)
		}
	}
	return "", false
}

func likeWord(word string) (string, bool) {
	for _, n := range dateNames {
		begins := func(begin string) bool { return strings.HasPrefix(word, begin) }
		if slices.Contains(n.words, word) || slices.ContainsFunc(n.begins, begins) {
			return n.means, true
		}
	}
	return "", false
}

// likePattern reads what is written as yyyy, mm or ddmmyyyy: letters that are each repeated.
func likePattern(letters string) (means string, found bool) {
	of := map[byte]string{'y': meansYear, 'm': meansMonth, 'd': meansDay, 'h': meansTime}
	for i := 0; i < len(letters); {
		c, run := letters[i], 0
		for ; i < len(letters) && letters[i] == c; i++ {
			run++
		}
		m, known := of[c]
		switch {
		case run < 2 || !known && (c != 's' || means != meansTime):
			return "", false
		case means == meansTime || m == meansTime:
			means = meansTime
		case means == "":
			means = m
		default:
			means = meansDate
		}
	}
	return means, means != ""
}
