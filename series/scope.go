package series

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/internal/statehash"
	"github.com/idnode/idnode/series/format"
)

// NumberState is what became of a number.
type NumberState uint8

// The states of a number.
const (
	Open NumberState = iota + 1
	Confirmed
	Voided
	Released
	// Unknown means that a restore or a recovery left open whether a document has the number.
	// No policy gives it to another key, lets it expire, or voids it.
	Unknown
)

// String returns the state in words.
func (s NumberState) String() string {
	names := [...]string{"none", "open", "confirmed", "voided", "released", "unknown"}
	if int(s) >= len(names) {
		return names[0]
	}
	return names[s]
}

// record is what is known of one number. It has 40 bytes.
type record struct {
	// text is the key, the label and the reason of a voided number. It has no key where the
	// number was released, and the key has another; or its key is unknown.
	text             string
	taken, expires   int64
	date             format.Date
	keyLen, labelLen uint8
	state            NumberState
	// shared means that another key may have got the unknown number: its own is a hint for people.
	shared bool
}

// owner returns the key that has the number; "" if none has it for certain.
func (r *record) owner() string {
	if r.shared {
		return ""
	}
	return r.key()
}

func (r *record) key() string    { return r.text[:r.keyLen] }
func (r *record) label() string  { return r.text[r.keyLen:][:r.labelLen] }
func (r *record) reason() string { return r.text[int(r.keyLen)+int(r.labelLen):] }

// write stores the texts, in memory of their own.
func (r *record) write(key, label, reason string) {
	r.text = strings.Join([]string{key, label, reason}, "")
	r.keyLen, r.labelLen = uint8(len(key)), uint8(len(label))
}

// slabSize is how many records are allocated, and copied when they change, at once.
const slabSize = 256

// pageSize is how many slabs' headers are copied when one changes.
const pageSize = 64

// slab is some consecutive records, and page some consecutive slabs.
type (
	slab struct {
		records []record
		epoch   uint32
	}
	page struct {
		slabs []slab
		epoch uint32
	}
)

// slab returns the slab of a place that is in the page.
func (p *page) slab(i int) *slab { return &p.slabs[i/slabSize%pageSize] }

// deadline is when an open number's time ends.
type deadline struct {
	at     int64
	number int64
}

func (d deadline) before(e deadline) bool { return d.at < e.at || d.at == e.at && d.number < e.number }

// scope is the numbers that count together: those of a branch in a year. Its records
// change in change and add alone, which keep the hash and all that is derived.
//
// Where a scope counts numbers, it counts places: without the gaps between allotments. A place is its number where
// there is no allotment; numberOf and placeOf translate, at the edges of the package.
//
// Invariant: every place above offset, up to last, has a record with a state. One up to offset has a record if
// somebody entered it.
type scope struct {
	index  int32
	epoch  uint32
	values []string // As Format.Scope gives them, in the spelling of the first number.
	period uint8    // How many of them are a period: 0 or 1.
	closed bool
	// begins is the first date of the period.
	begins format.Date
	// offset is the last number from before this series, and 0 without one: the scope's
	// first is the next. It changes in moveTo, while there are no numbers.
	offset int64
	last   int64
	pages  []page
	// allotted are the allotments; nil if there never were any.
	allotted *allotments
	// entered are the numbers up to offset that somebody entered; nil if there are none.
	entered *entered
	// name is a hash of the values, and hash the sum that has the scope's.
	name uint64
	hash *statehash.Sum

	// What follows is derived from the records; a frozen copy reads count alone. It is how
	// many numbers are in each state, and deadlines has the open ones whose time ends; it is
	// nil before the first.
	count     [Unknown + 1]int64
	deadlines *btree.BTreeG[deadline]
	// finder has a leaf for each leafSize numbers, if there are several; else it is nil.
	finder *finder
}

// given returns the values of callers, without the period.
func (c *scope) given() []string { return c.values[c.period:] }

// before orders scopes by the values of callers, and then by time.
func (c *scope) before(d *scope) bool {
	return cmp.Or(slices.CompareFunc(c.given(), d.given(), compareFolded), cmp.Compare(c.begins, d.begins)) < 0
}

// compareFolded orders values as their folded forms: they have ASCII letters and digits, of which
// digits have the bit of small letters too.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(a[i]|0x20, b[i]|0x20); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// ScopeName joins values, none of which has a slash. A scope's spellings have one name.
func ScopeName(values []string) string { return docid.Fold(strings.Join(values, "/")) }

// together returns values in one piece of memory of their own.
func together(values []string) []string {
	return strings.FieldsFunc(strings.Clone(strings.Join(values, "/")), func(r rune) bool { return r == '/' })
}

// sameValues reports whether values, which have ASCII letters and digits, are a spelling of others.
func sameValues(a, b []string) bool { return slices.EqualFunc(a, b, strings.EqualFold) }

// place returns the index of a number's record, from 0.
func (c *scope) place(number int64) int { return int(number - c.offset - 1) }

// slab returns the slab of a place, to read it.
func (c *scope) slab(i int) *slab { return c.pages[i/(pageSize*slabSize)].slab(i) }

// slabs yields all slabs.
func (c *scope) slabs(yield func(*slab) bool) {
	for i := range c.pages {
		for j := range c.pages[i].slabs {
			if !yield(&c.pages[i].slabs[j]) {
				return
			}
		}
	}
}

// ownPage returns the page of a place, to change it.
func (c *scope) ownPage(i int) *page {
	p := &c.pages[i/(pageSize*slabSize)]
	if p.epoch != c.epoch {
		p.slabs, p.epoch = slices.Clone(p.slabs), c.epoch
	}
	return p
}

// at returns a number's record, to read it. One from before the scope that was not entered has no state.
func (c *scope) at(number int64) *record {
	if number <= c.offset {
		return c.entered.get(number)
	}
	i := c.place(number)
	return &c.slab(i).records[i%slabSize]
}

func (c *scope) change(number int64, f func(r *record)) {
	if number <= c.offset {
		c.changeBefore(number, f)
		return
	}
	i := c.place(number)
	s := c.ownPage(i).slab(i)
	if s.epoch != c.epoch {
		s.records, s.epoch = append(make([]record, 0, cap(s.records)), s.records...), c.epoch
	}
	r := &s.records[i%slabSize]
	old := *r
	c.hash.Remove(c.hashRecord(number, r))
	f(r)
	c.hash.Add(c.hashRecord(number, r))
	c.derive(number, &old, r)
}

// derive takes a change into what is derived.
func (c *scope) derive(number int64, old, now *record) {
	c.count[old.state]--
	c.count[now.state]++
	if old.state == Open && now.state == Open && old.expires == now.expires && old.date == now.date {
		return
	}
	if old.state == Open && old.expires != 0 {
		c.deadlines.Delete(deadline{old.expires, number})
	}
	if now.state == Open && now.expires != 0 {
		if c.deadlines == nil {
			c.deadlines = btree.NewBTreeGOptions(deadline.before, btree.Options{NoLocks: true})
		}
		c.deadlines.Set(deadline{now.expires, number})
	}
	c.find(number, spanOf(old), spanOf(now))
}

// find takes what a number has into the finder.
func (c *scope) find(number int64, old, now span) {
	if c.finder == nil || old == now {
		return
	}
	c.finder.change(c.place(number)/leafSize, old, now, c.leaf)
}

// first returns the first number of a leaf.
func (c *scope) first(leaf int) int64 { return c.offset + 1 + int64(leaf)*leafSize }

// leaf returns what the numbers of a leaf have.
func (c *scope) leaf(i int) span {
	s, records := nothing, c.slab(i * leafSize).records[i*leafSize%slabSize:]
	for j := range records[:min(leafSize, len(records))] {
		s = s.join(spanOf(&records[j]))
	}
	return s
}

// next returns the first number above one that is wanted; 0 if there is none.
func (c *scope) next(above int64, w wanted) int64 {
	for from := max(above, c.offset) + 1; from <= c.last; {
		leaf := c.place(from) / leafSize
		for end := min(c.first(leaf+1)-1, c.last); from <= end; from++ {
			if w.is(c.at(from)) {
				return from
			}
		}
		if c.finder == nil {
			return 0
		}
		leaf, ok := c.finder.leaf(leaf+1, w)
		if !ok {
			return 0
		}
		from = c.first(leaf)
	}
	return 0
}

// add adds the next number, without a state, for which change is called next.
func (c *scope) add() (number int64) {
	c.last++
	c.count[0]++
	at := c.place(c.last)
	if at%(pageSize*slabSize) == 0 {
		c.pages = append(c.pages, page{epoch: c.epoch})
	}
	p := c.ownPage(at)
	if at%slabSize == 0 {
		p.slabs = append(p.slabs, slab{epoch: c.epoch})
	}
	s := p.slab(at)
	if len(s.records) == cap(s.records) {
		// A scope of few numbers does not pay for a whole slab.
		s.records, s.epoch = append(make([]record, 0, min(slabSize, max(1, 2*cap(s.records)))), s.records...), c.epoch
	}
	s.records = append(s.records, record{})
	if at >= leafSize && at%leafSize == 0 {
		if at == leafSize {
			c.finder = &finder{levels: [][]span{{c.leaf(0)}}}
		}
		c.finder.grow()
	}
	return c.last
}

// moveTo has the first number be the one behind offset. There are no numbers yet.
func (c *scope) moveTo(offset int64) {
	c.hash.Remove(c.hashHeader())
	c.offset, c.last = offset, offset
	c.hash.Add(c.hashHeader())
}

func (c *scope) empty() bool { return c.last == c.offset && c.entered == nil }

func (c *scope) close() {
	c.hash.Remove(c.hashHeader())
	c.closed = true
	c.hash.Add(c.hashHeader())
}

// end gives a number its last state. The reason is that of a voided one.
func (c *scope) end(number int64, state NumberState, reason string) {
	c.change(number, func(r *record) {
		r.state, r.shared = state, false
		if state == Voided {
			r.write(r.key(), r.label(), reason)
		}
	})
}

// ended returns how many open numbers there are whose time has ended.
func (c *scope) ended(now int64) int64 {
	if !c.ends(now) {
		return 0
	}
	return int64(sort.Search(c.deadlines.Len(), func(i int) bool {
		d, _ := c.deadlines.GetAt(i)
		return d.at > now
	}))
}

func (c *scope) waits(number int64, r *record) bool {
	if c.deadlines == nil {
		return false
	}
	_, ok := c.deadlines.Get(deadline{r.expires, number})
	return ok
}

// ends reports whether there are any.
func (c *scope) ends(now int64) bool {
	if c.deadlines == nil {
		return false
	}
	d, ok := c.deadlines.Min()
	return ok && d.at <= now
}
