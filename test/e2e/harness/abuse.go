package harness

import (
	"github.com/idnode/idnode/test/history"
)

// Abuse lets further callers of n take ranges and return them in all the ways in
// which one must not: late, twice, below the range, and in another's name.
func (tr *Traffic) Abuse(n *Node, callers int) {
	for range callers {
		var old []heldRange
		tr.work(plainDoor{n}, func(w *worker) history.Outcome { return w.abuse(&old) })
	}
}

// heldRange is a range with its token.
type heldRange struct {
	history.Op
	token string
}

// maxHeld is how many old ranges a dishonest caller remembers.
const maxHeld = 50

// abuse uses some of a range, makes returns that must not be believed, and gives
// the rest back for certain.
func (w *worker) abuse(old *[]heldRange) history.Outcome {
	var token string
	held := w.issue(history.Op{Kind: history.Range, Name: "abused", Count: w.draw(0, 1, 10)}, &token)
	if held.Outcome != history.OK {
		return held.Outcome
	}
	used := 1 + w.random.Int64N(held.High-held.Low+1)
	w.use(held, used)
	for _, r := range w.dishonest(heldRange{held, token}, *old) {
		w.giveBack(r, r.Last)
	}
	if *old = append(*old, heldRange{held, token}); len(*old) > maxHeld {
		*old = (*old)[1:]
	}
	return w.giveBack(heldRange{held, token}, held.Low+used-1).Outcome
}

func (w *worker) giveBack(r heldRange, last int64) history.Op {
	back := history.Op{Kind: history.Return, Name: r.Name, Low: r.Low, High: r.High, Last: last}
	return w.issue(back, &r.token)
}

// use records that the first numbers of a range were used.
func (w *worker) use(held history.Op, used int64) {
	w.Traffic.run.recorder.Event(history.Op{
		Kind: history.Use, Client: w.number, Database: held.Database, Name: held.Name, Low: held.Low, High: held.High, Tag: held.Tag,
		Blocks: []history.Block{{First: held.Low, Last: held.Low + used - 1}},
	})
}

// dishonest makes returns that must not be believed: of numbers in use, of numbers
// below the range, with an invented token, and of an older range.
func (w *worker) dishonest(present heldRange, old []heldRange) []heldRange {
	below, foreign, nameless := present, present, present
	below.Last = present.Low - 2 - w.random.Int64N(40)
	foreign.Last, foreign.token = present.Low-1, "0123456789abcdef"
	nameless.Last, nameless.token = present.Low-1, ""
	returns := []heldRange{below, foreign, nameless}
	if len(old) > 0 {
		late := old[w.random.IntN(len(old))]
		late.Last = late.Low - 1 + w.random.Int64N(late.High-late.Low+2)
		if late.Low < present.Low {
			// Its holder has given it back already; the rest may belong to another caller.
			returns = append(returns, late, late)
		}
	}
	return returns
}
