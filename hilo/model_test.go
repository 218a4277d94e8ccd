package hilo_test

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/hilo"
)

// model is the slow and obvious account of one tag. It knows of every single number who
// may use it, and of every range that was ever issued the outcome of it.
type model struct {
	max    int64
	holder map[int64]int // By number, the position in issued of who may use it.
	issued []issue
	highs  map[int64]bool // Every High there ever was.
}

// issue is a range that was issued or, with set, taken by a client itself.
type issue struct {
	hilo.Range
	token     uint64
	set       bool
	returned  bool
	forgotten bool // MaxOutstanding newer ones were outstanding at once.
}

// take notes a new holder of the numbers and fails if one of them has one.
func (m *model) take(t *rapid.T, i issue) {
	for n := i.Low; n <= i.High; n++ {
		if old, held := m.holder[n]; held {
			t.Fatalf("%d is in %v, but %v has it", n, i.Range, m.issued[old].Range)
		}
		m.holder[n] = len(m.issued)
	}
	m.issued = append(m.issued, i)
	m.max = i.High
}

// acceptable returns the range that a return with these words gives back, or -1: the
// only one that all sentences of the rule allow. That Max is its end is enough to
// know that it is the newest: there is no chain here.
func (m *model) acceptable(r hilo.Range, last int64, token uint64, checkToken bool) int {
	for i, known := range m.issued {
		switch {
		case known.set || known.returned || known.forgotten || known.High != r.High || known.High != m.max:
		case checkToken && (known.token != token || known.Low != r.Low):
		case !checkToken && r.Low != 0 && known.Low != r.Low:
		case last < known.Low-1 || last > known.High:
		default:
			return i
		}
	}
	return -1
}

// giveBack takes the numbers above last from their holder.
func (m *model) giveBack(t *rapid.T, i int, last int64) {
	m.issued[i].returned = true
	for n := m.issued[i].High; n > last; n-- {
		if m.holder[n] != i {
			t.Fatalf("%d comes back from one who has not got it", n)
		}
		delete(m.holder, n)
	}
	m.max = last
}

// machine runs random operations on the counter and on the model.
type machine struct {
	counter hilo.Counter
	model   model
	stack   []int // What the state should remember, as positions in issued, newest last.
	tokens  uint64
}

// holderOf returns a holder that no other range has.
func holderOf(token uint64) hilo.Holder {
	return hilo.Holder{Who: strconv.FormatUint(token, 10), At: int64(token)}
}

func (x *machine) next(t *rapid.T) {
	size := rapid.Int64Range(-1, 40).Draw(t, "size")
	lastMax := x.counter.Max + rapid.SampledFrom([]int64{0, 0, 0, -1, -1000, 1, 3, 50, hilo.MaxAhead + 1}).Draw(t, "ahead")
	x.tokens++
	after, r, err := x.counter.Next(size, lastMax, x.tokens, holderOf(x.tokens))
	if size < 1 || lastMax > x.counter.Max+hilo.MaxAhead {
		if err == nil {
			t.Fatalf("a size of %d with a last maximum of %d was accepted", size, lastMax)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	base := max(x.model.max, lastMax)
	if r.Low != base+1 || r.Size() < size {
		t.Fatalf("got %v for a size of %d above %d", r, size, base)
	}
	if x.model.highs[r.High] {
		t.Fatalf("%d was the end of a range before", r.High)
	}
	x.model.highs[r.High] = true
	if base != x.model.max {
		x.stack = nil
	}
	x.stack = append(x.stack, len(x.model.issued))
	if len(x.stack) > hilo.MaxOutstanding {
		x.model.issued[x.stack[0]].forgotten = true
		x.stack = x.stack[1:]
	}
	x.model.take(t, issue{Range: r, token: x.tokens})
	x.counter = after
}

func (x *machine) set(t *rapid.T) {
	expected := x.counter.Max + rapid.SampledFrom([]int64{0, 0, 0, 1, -1}).Draw(t, "wrong by")
	value := x.counter.Max + rapid.Int64Range(-3, 40).Draw(t, "by")
	after, err := x.counter.Set(value, expected)
	if legal := expected == x.model.max && value >= x.model.max; legal != (err == nil) {
		t.Fatalf("setting %d to %d with %d expected: %v", x.model.max, value, expected, err)
	}
	if err == nil && value > x.model.max {
		x.model.take(t, issue{Range: hilo.Range{Low: x.model.max + 1, High: value}, set: true})
		x.stack = nil
	}
	x.counter = after
}

// giveBack returns any range that ever was, or none that was, in any words.
func (x *machine) giveBack(t *rapid.T) {
	if len(x.model.issued) == 0 {
		return
	}
	// The newest ranges are the interesting ones.
	back := rapid.IntRange(0, min(len(x.model.issued)-1, 8)).Draw(t, "back")
	which := x.model.issued[len(x.model.issued)-1-back]
	if len(x.stack) > 0 && rapid.Bool().Draw(t, "of the chain") {
		which = x.model.issued[x.stack[len(x.stack)-1]]
	}
	r, token := which.Range, which.token
	last := rapid.OneOf(
		rapid.SampledFrom([]int64{r.Low - 1, r.Low - 1, r.High, r.Low - 2, r.High + 1, 0, -1}),
		rapid.Int64Range(r.Low-1, r.High),
	).Draw(t, "last")
	checkToken := rapid.Bool().Draw(t, "by token")
	switch rapid.IntRange(0, 9).Draw(t, "words") {
	case 0:
		token ^= 1
	case 1:
		r.Low++
	case 2:
		r.High--
	case 3, 4, 5:
		r.Low = 0
	}
	x.checkReturn(t, r, last, token, checkToken)
}

func (x *machine) checkReturn(t *rapid.T, r hilo.Range, last int64, token uint64, checkToken bool) {
	after, ok := x.counter.Return(r, last, token, checkToken)
	i := x.model.acceptable(r, last, token, checkToken)
	if ok != (i >= 0) {
		t.Fatalf("the return of %v with last %d was accepted: %v, want %v", r, last, ok, i >= 0)
	}
	if !ok {
		return
	}
	if len(x.stack) == 0 || x.stack[len(x.stack)-1] != i {
		t.Fatalf("%v came back, which is not the newest of %v", r, x.stack)
	}
	wholly := last < x.model.issued[i].Low
	x.model.giveBack(t, i, last)
	x.stack = x.stack[:len(x.stack)-1]
	if !wholly {
		x.stack = nil
	}
	x.counter = after
}

// check compares what the counter says of itself with the model.
func (x *machine) check(t *rapid.T) {
	if x.counter.Max != x.model.max || x.counter.Max < 0 || x.counter.Peak < x.counter.Max {
		t.Fatalf("Max is %d and Peak %d, want a Max of %d", x.counter.Max, x.counter.Peak, x.model.max)
	}
	for n := range x.model.holder {
		if n > x.counter.Max {
			t.Fatalf("%d is held, but Max is %d", n, x.counter.Max)
		}
	}
	var want []hilo.Outstanding
	for _, i := range x.stack {
		token := x.model.issued[i].token
		want = append(want, hilo.Outstanding{Range: x.model.issued[i].Range, Token: token, Holder: holderOf(token)})
	}
	if !slices.Equal(want, x.counter.Outstanding) {
		t.Fatalf("the outstanding ranges are %v, want %v", x.counter.Outstanding, want)
	}
	for i, o := range x.counter.Outstanding {
		end := x.counter.Max
		if i+1 < len(x.counter.Outstanding) {
			end = x.counter.Outstanding[i+1].Low - 1
		}
		if o.High != end {
			t.Fatalf("the outstanding ranges are no chain up to %d: %v", x.counter.Max, x.counter.Outstanding)
		}
	}
}

func TestCounterAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := machine{model: model{holder: map[int64]int{}, highs: map[int64]bool{}}}
		t.Repeat(map[string]func(*rapid.T){
			"next":   x.next,
			"again":  x.next,
			"return": x.giveBack,
			"back":   x.giveBack,
			"set":    x.set,
			"":       x.check,
		})
	})
}
