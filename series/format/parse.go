package format

import (
	"strconv"
	"strings"
	"time"
)

// Parse reads a text that Format gave: the same values and number, and a date that gives
// the same text and scope. The error is a *Error.
func (f *Format) Parse(text string) (Numbered, error) {
	wrong := func(detail string) (Numbered, error) { return Numbered{}, &Error{Field: "text", Detail: detail} }
	if len(text) > MaxTextBytes {
		return wrong("is not of the format")
	}
	ends := make([]int, len(f.parts))
	if !f.split(text, ends, 0, 0, map[[2]int]bool{}) {
		return wrong("is not of the format")
	}
	n, dates := f.assemble(text, ends)
	p, found := f.counter(), false
	if n.Number < 1 && p.radix == 0 {
		return wrong("has the number 0")
	}
	if n.Date, found = f.dateOf(dates); !found {
		return wrong("has a date that does not exist")
	}
	var err error
	if n.Scope, err = f.Scope(n.Date, n.Values); err != nil {
		return Numbered{}, err
	}
	if p.radix > 0 {
		n.Number = f.unscramble(p, n.Scope, n.Number)
	}
	switch {
	case n.Number < 1 || n.Number > f.most:
		return wrong("is not of the format")
	case !strings.EqualFold(f.text(n.Date, n.Values, n.Number), text): // Scrambled numbers alone have a case that does not count.
		return wrong("has the wrong check digit")
	}
	return n, nil
}

// split finds where the parts of a text end. failed has the places, as part and byte, from
// which there is no way: without it the time would grow with a power of the length.
func (f *Format) split(text string, ends []int, i, at int, failed map[[2]int]bool) bool {
	if i == len(f.parts) {
		return at == len(text)
	}
	if failed[[2]int{i, at}] {
		return false
	}
	p := &f.parts[i]
	for length := 0; ; length++ {
		if length >= p.least {
			ends[i] = at + length
			if f.split(text, ends, i+1, at+length, failed) {
				return true
			}
		}
		if at+length == len(text) || length == p.longest(text[at]) || !p.allows(length, text[at+length]) {
			failed[[2]int{i, at}] = true
			return false
		}
	}
}

// dated is what a token of the date shows.
type dated struct {
	*part
	numeral int
}

// assemble returns what the parts of a text mean.
func (f *Format) assemble(text string, ends []int) (n Numbered, dates []dated) {
	at := 0
	for i := range f.parts {
		p, s := &f.parts[i], text[at:ends[i]]
		at = ends[i]
		switch p.kind {
		case literal, checkDigits:
		case value:
			n.Values = append(n.Values, s)
		case number:
			if p.radix > 0 {
				n.Number = scrambledOf(s, p.radix)
				continue
			}
			n.Number, _ = strconv.ParseInt(s, 10, 64) // At most 18 digits.
		default:
			numeral, _ := strconv.Atoi(s) // At most four digits.
			dates = append(dates, dated{p, numeral})
		}
	}
	return n, dates
}

// cycle is after how many years the weekdays and leap years are the same again; it begins
// at cycleStart, as there is no exception in it.
const cycleStart, cycle = 2000, 28

// dateOf returns the first date that tokens show. The years to search follow from any
// token that names one; where none does, every possible day is in a cycle.
func (f *Format) dateOf(dates []dated) (Date, bool) {
	from, to := cycleStart, cycleStart+cycle-1
	for _, d := range dates {
		if !d.kind.ofYear() {
			continue
		}
		from = d.numeral
		if d.ofTwoDigits() {
			from += 2000
		}
		if to = from; d.kind != year {
			from, to = from-1, to+1
		}
	}
	for d := max(FirstDate, DateOf(from, time.January, 1)); d <= min(LastDate, DateOf(to, time.December, 31)); d++ {
		if f.shows(d, dates) {
			return d, true
		}
	}
	return 0, false
}

func (f *Format) shows(d Date, dates []dated) bool {
	t := d.time()
	for _, x := range dates {
		if f.numeral(x.part, t) != x.numeral || !f.hasYear(x.part, t) {
			return false
		}
	}
	return true
}
