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
	part, length int
	first        byte
}

// automaton reads the texts of a format. A text may take it to several states, the
// readings: then it can be read in several ways.
type automaton struct {
	// readings are numbered: 0 has taken nothing. There is one for each byte of the longest
	// text, and another for a number with a leading zero, so a byte counts them.
	readings []reading
	letters  []byte
	// moves are by reading and letter.
	moves [][]move
	// expected has, by reading, the letters that lead elsewhere than the first ones do.
	expected [][]int
}

// move is where a letter leads from a reading: to one of the same part, and to one of the
// next; 0 is nowhere.
type move [2]uint8

// two is two ways to read the same bytes, by their numbers.
type two struct {
	one, other uint8
	// differ means that a byte was taken by different parts, or at different places.
	differ bool
}

// step is how a two was reached first: by a byte from another step.
type step struct {
	two
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
// not folded. It goes breadth-first through the product of the automaton with itself, which
// is the usual test for an ambiguous automaton. Two ways that change places are the same, so
// there are some 11,000 pairs at most, each looked at once.
func (f *Format) search(spelled *Format) error {
	a := f.automaton()
	reached := make([]bool, 2*len(a.readings)*len(a.readings))
	steps := make([]step, 1, 4*len(a.readings))
	for i := 0; i < len(steps); i++ {
		at := steps[i].two
		if at.differ && f.complete(a.readings[at.one]) && f.complete(a.readings[at.other]) {
			return f.collision(spelled, a, steps, i)
		}
		for _, letters := range [][]int{{0, 1, 2}, a.expected[at.one], a.expected[at.other]} {
			for _, letter := range letters {
				for _, next := range a.both(at, letter) {
					if place := a.place(next); next.one > 0 && !reached[place] {
						reached[place] = true
						steps = append(steps, step{next, a.letters[letter], uint16(i)})
					}
				}
			}
		}
	}
	return nil
}

// automaton returns what reads the format's texts.
func (f *Format) automaton() *automaton {
	a := &automaton{readings: []reading{{part: -1}}, letters: f.letters()}
	numbers := map[reading]int{}
	var all []reading
	for i := 0; i < len(a.readings); i++ {
		moves, expected := make([]move, len(a.letters)), []int(nil)
		for letter, c := range a.letters {
			if letter >= anyLetters && f.expects(a.readings[i], c) {
				expected = append(expected, letter)
			}
			all = f.after(all[:0], a.readings[i], c)
			for j, next := range all {
				if numbers[next] == 0 {
					numbers[next] = len(a.readings)
					a.readings = append(a.readings, next)
				}
				moves[letter][j] = uint8(numbers[next])
			}
		}
		a.moves, a.expected = append(a.moves, moves), append(a.expected, expected)
	}
	return a
}

// both returns the positions of two ways after one more letter; those of which one is 0 do
// not exist.
func (a *automaton) both(at two, letter int) (all [4]two) {
	for i, to := range a.moves[at.one][letter] {
		for j, too := range a.moves[at.other][letter] {
			if to > 0 && too > 0 {
				all[2*i+j] = two{to, too, at.differ || to != too}
			}
		}
	}
	return all
}

// place is the place of two ways, in either order, among all pairs.
func (a *automaton) place(t two) int {
	place := 2 * (int(min(t.one, t.other))*len(a.readings) + int(max(t.one, t.other)))
	if t.differ {
		place++
	}
	return place
}

// anyLetters is the number of letters that represent all letters in no literal text.
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

// after appends the possible positions of a reading after one more byte.
func (f *Format) after(all []reading, r reading, c byte) []reading {
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

func (f *Format) complete(r reading) bool {
	return r.part == len(f.parts)-1 && r.length >= f.parts[r.part].least
}

// collision tells of the two ways to read a text.
func (f *Format) collision(spelled *Format, a *automaton, steps []step, at int) error {
	var text []byte
	one, other := make([]int, len(f.parts)), make([]int, len(f.parts))
	found := &CollisionError{}
	for ; at > 0; at = int(steps[at].from) {
		text = append(text, steps[at].c)
		here, there := a.readings[steps[at].one].part, a.readings[steps[at].other].part
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
			if k := f.parts[i].kind.whole(); k.ofDate() {
				s[k] = int16(f.numeral(k, t)) // At most 9999.
			}
		}
		first, ok := seen[s]
		if !ok {
			seen[s] = d
		} else if f.period(first.time()) != f.period(t) {
			values := f.anyValues()
			return &CollisionError{
				Position: len(f.template), Text: f.text(d, values, 1),
				One: Numbered{first, values, 1}, Other: Numbered{d, values, 1},
			}
		}
	}
	return nil
}

// showsPeriod reports whether the tokens of the date name the period by themselves, as
// nearly always.
func (f *Format) showsPeriod() bool {
	name := map[Reset][]kind{
		ResetYear: {year}, ResetMonth: {year, month}, ResetDay: {year, month, day}, ResetWeek: {weekYear, week}, ResetFiscalYear: {fiscalYear},
	}[f.reset]
	return !slices.ContainsFunc(name, func(k kind) bool {
		return !slices.ContainsFunc(f.parts, func(p part) bool { return p.kind.whole() == k })
	})
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
