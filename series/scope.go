package series

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/internal/statehash"
	"github.com/idnode/idnode/series/format"
)

// State is what became of a number.
type State uint8

// The states of a number.
const (
	Open State = iota + 1
	Confirmed
	Voided
	Released
)

// String returns the state in words.
func (s State) String() string {
	names := [...]string{"unknown", "open", "confirmed", "voided", "released"}
	if int(s) >= len(names) {
		return names[0]
	}
	return names[s]
}

// record is what is known of one number. It has 40 bytes.
type record struct {
	// text is the key, the label and the reason of a voided number. It has no key where the
	// number was released, and the key has another.
	text             string
	taken, expires   int64
	date             format.Date
	keyLen, labelLen uint8
	state            State
	// lapsed means that the number is open, that its time has ended, and that it may be
	// given to another key.
	lapsed bool
}

func (r *record) key() string    { return r.text[:r.keyLen] }
func (r *record) label() string  { return r.text[r.keyLen:][:r.labelLen] }
func (r *record) reason() string { return r.text[int(r.keyLen)+int(r.labelLen):] }

// write stores the texts, in memory of their own.
func (r *record) write(key, label, reason string) {
	var b strings.Builder
	b.Grow(len(key) + len(label) + len(reason))
	b.WriteString(key)
	b.WriteString(label)
	b.WriteString(reason)
	r.text, r.keyLen, r.labelLen = b.String(), uint8(len(key)), uint8(len(label))
}

// slabSize is how many records are allocated, and copied when they change, at once.
const slabSize = 256

// slab is some consecutive records.
type slab struct {
	records []record
	// frozen means that a frozen copy shares the records: who changes one copies them.
	frozen bool
}

// deadline is when an open number's time ends.
type deadline struct {
	at     int64
	number int64
}

// scope is the numbers that count together: those of a branch in a year. Its records
// change in change and add alone, which keep the hash.
//
// Invariant: every number above offset, up to last, has a record, and its state is one of
// four.
//
// Invariant: free has the released and the lapsed numbers; deadlines has the other open
// ones whose time ends.
type scope struct {
	index  int
	values []string // As Format.Scope gives them, in the spelling of the first number.
	// given has the values of callers, without the period.
	given []string
	// begins is the first date of the period.
	begins format.Date
	// offset is the last number from before this series, and 0 without one: the scope's
	// first is the next. It changes in moveTo, while there are no numbers.
	offset   int64
	last     int64
	lastDate format.Date
	closed   bool

	// count is how many numbers are in each state; lapsed ones are not open.
	count     [Released + 1]int64
	lapsed    int64
	slabs     []slab
	free      *btree.BTreeG[int64]
	deadlines *btree.BTreeG[deadline]
	// lowestOpen is at most the lowest open number.
	lowestOpen int64
	// name is a hash of the values, and hash the series' sum.
	name uint64
	hash *statehash.Sum
}

func newScope(index int, values, given []string, hash *statehash.Sum) *scope {
	return &scope{
		index: index, values: values, given: given, lastDate: format.FirstDate, lowestOpen: 1,
		name: hashScopeName(values), hash: hash,
		free: btree.NewBTreeGOptions(func(a, b int64) bool { return a < b }, btree.Options{NoLocks: true}),
		deadlines: btree.NewBTreeGOptions(func(a, b deadline) bool {
			return a.at < b.at || a.at == b.at && a.number < b.number
		}, btree.Options{NoLocks: true}),
	}
}

// before orders scopes by the values of callers, and then by time.
func (c *scope) before(d *scope) bool {
	return cmp.Or(slices.CompareFunc(c.given, d.given, compareFolded), cmp.Compare(c.begins, d.begins)) < 0
}

// scopeName joins values, none of which has a slash. A scope's spellings have one name.
func scopeName(values []string) string { return docid.Fold(strings.Join(values, "/")) }

// compareFolded orders values as their folded forms: they have ASCII letters and digits.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower(a[i]), lower(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// sameValues reports whether values are a spelling of others.
func sameValues(a, b []string) bool { return slices.CompareFunc(a, b, compareFolded) == 0 }

// at returns a number's record, to read it.
func (c *scope) at(number int64) *record {
	i := number - c.offset - 1
	return &c.slabs[i/slabSize].records[i%slabSize]
}

// change changes a number's record.
func (c *scope) change(number int64, f func(r *record)) {
	i := number - c.offset - 1
	s := &c.slabs[i/slabSize]
	if s.frozen {
		s.records, s.frozen = append(make([]record, 0, cap(s.records)), s.records...), false
	}
	r := &s.records[i%slabSize]
	c.hash.Remove(c.hashRecord(number, r))
	f(r)
	c.hash.Add(c.hashRecord(number, r))
}

// add adds the next number, without a state, for which change is called next.
func (c *scope) add() (number int64) {
	if (c.last-c.offset)%slabSize == 0 {
		c.slabs = append(c.slabs, slab{})
	}
	c.last++
	s := &c.slabs[len(c.slabs)-1]
	if len(s.records) == cap(s.records) {
		// A scope of few numbers does not pay for a whole slab.
		s.records, s.frozen = append(make([]record, 0, min(slabSize, max(4, 2*cap(s.records)))), s.records...), false
	}
	s.records = append(s.records, record{})
	return c.last
}

// moveTo has the first number be the one behind offset. There are no numbers yet.
func (c *scope) moveTo(offset int64) {
	c.hash.Remove(c.hashHeader())
	c.offset, c.last, c.lowestOpen = offset, offset, offset+1
	c.hash.Add(c.hashHeader())
}

// empty reports whether the scope has no numbers.
func (c *scope) empty() bool { return c.last == c.offset }

// reach notes the date of a new number.
func (c *scope) reach(date format.Date) {
	c.hash.Remove(c.hashHeader())
	c.lastDate = max(c.lastDate, date)
	c.hash.Add(c.hashHeader())
}

// close ends the scope.
func (c *scope) close() {
	c.hash.Remove(c.hashHeader())
	c.closed = true
	c.hash.Add(c.hashHeader())
}

// bind makes a number the open one of a key.
func (c *scope) bind(number int64, r *record) {
	r.state, r.lapsed = Open, false
	c.count[Open]++
	c.lowestOpen = min(c.lowestOpen, number)
	if r.expires != 0 {
		c.deadlines.Set(deadline{r.expires, number})
	}
}

// lapse makes a number one that another key may get.
func (c *scope) lapse(number int64, r *record) {
	r.state, r.lapsed = Open, true
	c.lapsed++
	c.free.Set(number)
}

// finish gives a number a state that is not open.
func (c *scope) finish(number int64, r *record, state State) {
	r.state = state
	c.count[state]++
	if state == Released {
		c.free.Set(number)
	}
}

// unbind takes a number out of its state.
func (c *scope) unbind(number int64, r *record) {
	switch {
	case r.lapsed:
		c.lapsed--
		c.free.Delete(number)
	case r.state == Open:
		c.count[Open]--
		if r.expires != 0 {
			c.deadlines.Delete(deadline{r.expires, number})
		}
	case r.state == Released:
		c.count[Released]--
		c.free.Delete(number)
	}
	r.lapsed = false
}

// end gives a number its last state. The reason is that of a voided one.
func (c *scope) end(number int64, state State, reason string) {
	c.change(number, func(r *record) {
		c.unbind(number, r)
		c.finish(number, r, state)
		if state == Voided {
			r.write(r.key(), r.label(), reason)
		}
	})
}

// ended returns how many numbers there are whose time has ended, and that were not judged
// yet.
func (c *scope) ended(now int64) int64 {
	return int64(sort.Search(c.deadlines.Len(), func(i int) bool {
		d, _ := c.deadlines.GetAt(i)
		return d.at > now
	}))
}

// settle does what the time demands.
func (c *scope) settle(now int64, policy OnExpiry) {
	if policy == ExpiryReports {
		return
	}
	for {
		d, ok := c.deadlines.Min()
		if !ok || d.at > now {
			return
		}
		if policy == ExpiryVoids {
			c.end(d.number, Voided, ReasonExpired)
			continue
		}
		c.change(d.number, func(r *record) {
			c.unbind(d.number, r)
			c.lapse(d.number, r)
		})
	}
}

// run returns the first of the lowest count consecutive numbers that can be given: free
// ones, but for those kept, and numbers that were never given. If the first maxLooked free
// ones have no such run, these are the latter.
func (c *scope) run(count int64, kept map[ref]bool) int64 {
	var first, next int64
	looked := 0
	c.free.Scan(func(n int64) bool {
		if looked++; looked > maxLooked {
			next = first
			return false
		}
		if kept[refOf(c.index, n)] {
			return true
		}
		if n != next {
			first = n
		}
		next = n + 1
		return next-first < count
	})
	if next > first && (next-first == count || next == c.last+1) {
		return first
	}
	return c.last + 1
}

// oldest returns the key of the lowest open number.
func (c *scope) oldest() string {
	for ; c.lowestOpen <= c.last; c.lowestOpen++ {
		if r := c.at(c.lowestOpen); r.state == Open && !r.lapsed {
			return r.key()
		}
	}
	return ""
}
