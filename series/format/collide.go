package format

import (
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/client/docid"
)

// reading is the position of one way to read a text: the part that took the last byte, how
// many bytes it took, and the first of them.
type reading struct {
	part, length int16
	first        byte
}

// pair is two ways to read the same bytes.
type pair struct {
	one, other reading
	// differ means that a byte was taken by different parts, or at different places.
	differ bool
}

// places gives readings and pairs of them their places in tables.
type places struct {
	// before is, by part, the place of a reading that has taken nothing of it.
	before []int
	// readings is how many places there are for readings: one for the start, one for each byte
	// of the longest text, and others for a number with a leading zero.
	readings int
}

func (f *Format) places() places {
	p := places{readings: 1}
	for i := range f.parts {
		p.before = append(p.before, p.readings-1)
		p.readings += f.parts[i].most
	}
	p.readings += MaxDigits
	return p
}

func (p places) of(r reading) int {
	switch {
	case r.part < 0:
		return 0
	case r.first == '0':
		return p.readings - int(r.length)
	default:
		return p.before[r.part] + int(r.length)
	}
}

// ofPair returns the place of a pair. Two ways that change places are the same.
func (p places) ofPair(two pair) int {
	one, other := p.of(two.one), p.of(two.other)
	place := 2 * (min(one, other)*p.readings + max(one, other))
	if two.differ {
		place++
	}
	return place
}

// step is how a pair was reached first: by a byte from another step.
type step struct {
	pair
	c    byte
	from uint16
}

// readTwoWays finds a text that can be read in two ways, the shortest first. Check digits
// count as any digits: only tokens of fixed width follow them, so both ways see the same
// text before the check. Tokens of the date count as any digits too, which may refuse a
// format whose dates exclude the second way, and accepts none that has one.
//
// Texts that differ in case alone count as one, for they are one as ids.
func (f *Format) readTwoWays() error { return f.folded().search(f) }

// folded returns the format of the folded texts.
func (f *Format) folded() *Format {
	folded := *f
	folded.parts = slices.Clone(f.parts)
	for i := range folded.parts {
		if p := &folded.parts[i]; p.kind == literal {
			p.text = docid.Fold(p.text)
			p.least, p.most = len(p.text), len(p.text)
		}
	}
	return &folded
}

// search finds a text that can be read in two ways, and tells of it by the format that was
// not folded. It goes breadth-first through the product of the automaton that reads the texts
// with itself, which is the usual test for an ambiguous automaton. There are some 11,000 pairs
// at most, each looked at once, with one byte of each kind that parts tell apart there. A 1
// comes first, because it is a month, a day and a week where it is repeated.
func (f *Format) search(spelled *Format) error {
	start := reading{part: -1}
	places, steps := f.places(), []step{{pair: pair{one: start, other: start}}}
	reached := make([]bool, 2*places.readings*places.readings)
	var ones, others []reading
	for i := 0; i < len(steps); i++ {
		at := steps[i].pair
		if at.differ && f.complete(at.one) && f.complete(at.other) {
			return f.collision(spelled, steps, i)
		}
		for _, c := range [...]byte{'1', 'A', '0', f.expected(at.one), f.expected(at.other)} {
			ones, others = f.after(ones[:0], at.one, c), f.after(others[:0], at.other, c)
			for _, one := range ones {
				for _, other := range others {
					next := pair{one, other, at.differ || one != other}
					if place := places.ofPair(next); !reached[place] {
						reached[place] = true
						steps = append(steps, step{next, c, uint16(i)})
					}
				}
			}
		}
	}
	return nil
}

// expected returns the byte by which a literal text goes on, or begins; 0 if none does. No two
// literal texts follow each other.
func (f *Format) expected(r reading) byte {
	if r.part >= 0 {
		if p := &f.parts[r.part]; p.kind == literal && int(r.length) < len(p.text) {
			return p.text[r.length]
		}
	}
	if next := int(r.part) + 1; next < len(f.parts) && f.parts[next].kind == literal {
		return f.parts[next].text[0]
	}
	return 0
}

// after appends the possible positions of a reading after one more byte.
func (f *Format) after(all []reading, r reading, c byte) []reading {
	if r.part >= 0 {
		p := &f.parts[r.part]
		if length := int(r.length); length < p.longest(r.first) && p.allows(length, c) {
			all = append(all, reading{r.part, r.length + 1, r.first})
		}
		if int(r.length) < p.least {
			return all
		}
	}
	if next := int(r.part) + 1; next < len(f.parts) && f.parts[next].allows(0, c) {
		all = append(all, reading{r.part + 1, 1, f.parts[next].remember(c)})
	}
	return all
}

// remember returns what decides how a text of the part may go on after its first byte.
func (p *part) remember(c byte) byte {
	if p.kind == number && c == '0' {
		return '0'
	}
	return '1'
}

func (f *Format) complete(r reading) bool {
	return int(r.part) == len(f.parts)-1 && int(r.length) >= f.parts[r.part].least
}

// collision tells of the two ways to read a text.
func (f *Format) collision(spelled *Format, steps []step, at int) error {
	var text []byte
	one, other := make([]int, len(f.parts)), make([]int, len(f.parts))
	found := &CollisionError{}
	for ; at > 0; at = int(steps[at].from) {
		text = append(text, steps[at].c)
		here, there := steps[at].one.part, steps[at].other.part
		one[here]++
		other[there]++
		if steps[at].differ {
			found.Position = f.parts[min(here, there)].at
		}
	}
	slices.Reverse(text)
	n, ok := f.example(string(text), one)
	m, too := f.example(string(text), other)
	if !ok || !too {
		return found
	}
	same := spelled.text(n.Date, n.Values, n.Number)
	if docid.Fold(same) == docid.Fold(spelled.text(m.Date, m.Values, m.Number)) {
		found.Text, found.One, found.Other = same, n, m
	}
	return found
}

// example returns the number that a text means, read by the lengths of its parts.
func (f *Format) example(text string, lengths []int) (Numbered, bool) {
	for i := 1; i < len(lengths); i++ {
		lengths[i] += lengths[i-1]
	}
	n, dates := f.assemble(text, lengths)
	found := false
	n.Date, found = f.dateOf(dates)
	return n, found && f.checkScope(n.Date, n.Values) == nil && n.Number > 0
}

// periodUnknown finds two days that have the same text and different periods. The days of
// a cycle are all that can differ where the year has a name; where it has none, two years
// are enough.
func (f *Format) periodUnknown() error {
	if f.showsPeriod() {
		return nil
	}
	type shown [fiscalYear + 1]int16
	seen := make(map[shown]Date, cycle*366)
	for d := max(DateOf(cycleStart, time.January, 1), f.first()); d < DateOf(cycleStart+cycle, time.January, 1); d++ {
		var s shown
		t := d.time()
		for i := range f.parts {
			if k := f.parts[i].kind.told(); k.ofDate() {
				s[k] = int16(f.whole(k, t)) // At most 9999.
			}
		}
		first, ok := seen[s]
		if !ok {
			seen[s] = d
		} else if f.period(first.time()) != f.period(t) {
			values := f.anyValues()
			return &CollisionError{
				Position: len(f.template), Text: f.text(d, values, 1),
				One: Numbered{Date: first, Values: values, Number: 1}, Other: Numbered{Date: d, Values: values, Number: 1},
			}
		}
	}
	return nil
}

// showsPeriod reports whether the tokens of the date name the period, as nearly always.
func (f *Format) showsPeriod() bool {
	name := map[Reset][]kind{
		ResetYear: {year}, ResetMonth: {year, month}, ResetDay: {year, month, day}, ResetWeek: {weekYear, week}, ResetFiscalYear: {fiscalYear},
	}[f.reset]
	return !slices.ContainsFunc(name, func(k kind) bool {
		return !slices.ContainsFunc(f.parts, func(p part) bool { return p.kind.told() == k })
	})
}

// anyValues returns values for an example.
func (f *Format) anyValues() (values []string) {
	for i := range f.values {
		values = append(values, strings.Repeat("A", f.values[i].least))
	}
	return values
}
