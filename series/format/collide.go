package format

import (
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/docid"
)

// reading is where one way to read a text stands: the part that took the last byte, how
// many bytes it took, and the first of them.
type reading struct {
	part, length int
	first        byte
}

// two is two ways to read the same bytes.
type two struct {
	one, other reading
	// differ means that a byte was taken by different parts, or at different places.
	differ bool
}

// step is how a two was reached first.
type step struct {
	from two
	c    byte
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
// not folded.
func (f *Format) search(spelled *Format) error {
	start := two{one: reading{part: -1}, other: reading{part: -1}}
	reached := map[two]step{start: {}}
	letters := f.letters()
	for queue := []two{start}; len(queue) > 0; queue = queue[1:] {
		if at := queue[0]; at.differ && f.complete(at.one) && f.complete(at.other) {
			return f.collision(spelled, reached, at)
		}
		for i, c := range letters {
			if i >= anyLetters && !f.expects(queue[0].one, c) && !f.expects(queue[0].other, c) {
				continue // Both take it as one of the first letters, or neither does.
			}
			for _, next := range f.both(queue[0], c) {
				if _, ok := reached[next]; !ok {
					reached[next] = step{queue[0], c}
					queue = append(queue, next)
				}
			}
		}
	}
	return nil
}

// anyLetters is how many of the letters stand for all that no literal text has.
const anyLetters = 3

// expects reports whether a byte may go on with a literal text.
func (f *Format) expects(r reading, c byte) bool {
	if r.part >= 0 && f.parts[r.part].is(r.length, c) {
		return true
	}
	return r.part+1 < len(f.parts) && f.parts[r.part+1].is(0, c)
}

// is reports whether a part is a literal text with a byte at an index.
func (p *part) is(index int, c byte) bool {
	return p.kind == literal && index < len(p.text) && p.text[index] == c
}

// letters returns one of each kind of byte that parts tell apart. A 1 comes first, because
// it is a month, a day and a week where it is repeated.
func (f *Format) letters() []byte {
	letters := []byte{'1', 'A', '0'}
	for i := range f.parts {
		if p := &f.parts[i]; p.kind == literal {
			letters = append(letters, p.text...)
		}
	}
	slices.Sort(letters[anyLetters:])
	return slices.Compact(letters)
}

// after returns where a reading may stand after one more byte.
func (f *Format) after(r reading, c byte) (all []reading) {
	if r.part >= 0 {
		p := &f.parts[r.part]
		if r.length < p.longest(r.first) && p.allows(r.length, c) {
			all = append(all, reading{r.part, r.length + 1, r.first})
		}
		if r.length < p.least {
			return all
		}
	}
	if next := r.part + 1; next < len(f.parts) && f.parts[next].allows(0, c) {
		all = append(all, reading{next, 1, f.parts[next].remember(c)})
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

func (f *Format) both(at two, c byte) (all []two) {
	others := f.after(at.other, c)
	for _, one := range f.after(at.one, c) {
		for _, other := range others {
			all = append(all, two{one, other, at.differ || one != other})
		}
	}
	return all
}

func (f *Format) complete(r reading) bool {
	return r.part == len(f.parts)-1 && r.length >= f.parts[r.part].least
}

// collision tells of the two ways to read a text.
func (f *Format) collision(spelled *Format, reached map[two]step, at two) error {
	var text []byte
	one, other := make([]int, len(f.parts)), make([]int, len(f.parts))
	found := &CollisionError{}
	for at.one.part >= 0 {
		text = append(text, reached[at].c)
		one[at.one.part]++
		other[at.other.part]++
		if at.differ {
			found.Position = f.parts[min(at.one.part, at.other.part)].at
		}
		at = reached[at].from
	}
	slices.Reverse(text)
	a, okA := f.example(string(text), one)
	b, okB := f.example(string(text), other)
	if !okA || !okB {
		return found
	}
	same := spelled.text(a.Date, a.Values, a.Number)
	if docid.Fold(same) == docid.Fold(spelled.text(b.Date, b.Values, b.Number)) {
		found.Text, found.One, found.Other = same, a, b
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
	if f.reset == ResetNever {
		return nil
	}
	type shown [fiscalYear + 1]int16
	seen := make(map[shown]Date, cycle*366)
	for d := max(DateOf(cycleStart, time.January, 1), f.first()); d < DateOf(cycleStart+cycle, time.January, 1); d++ {
		var s shown
		t := d.time()
		for i := range f.parts {
			if k := f.parts[i].kind.whole(); k.ofDate() {
				s[k] = int16(f.numeral(k, t)) // At most 9999.
			}
		}
		first, ok := seen[s]
		if !ok {
			seen[s] = d
		} else if f.periodOf(first.time()) != f.periodOf(t) {
			values := f.anyValues()
			return &CollisionError{
				Position: len(f.template), Text: f.text(d, values, 1),
				One: Numbered{first, values, 1}, Other: Numbered{d, values, 1},
			}
		}
	}
	return nil
}

// anyValues returns values for an example.
func (f *Format) anyValues() (values []string) {
	for i := range f.parts {
		if p := &f.parts[i]; p.kind == value {
			values = append(values, strings.Repeat("A", p.least))
		}
	}
	return values
}
