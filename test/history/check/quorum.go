package check

import (
	"slices"
	"time"

	"github.com/idnode/idnode/test/history"
)

// quorum judges calls by their times and codes: every try is a call here.
//
// Without a quorum, from the end of "lost" to the beginning of "back", no call
// that needs one succeeds if it was made later than the lease allows, and it
// ends with one of the codes for that. And every call ends within the bound,
// always.
//
// It needs the history in about the order in which the calls ended, as a
// recorder writes it: it keeps only the calls made without a quorum.
type quorum struct {
	options Options
	calls   map[history.Kind]Calls
	// open are the times without a quorum that have not ended.
	open []*without
	// ended are those that have.
	ended  []*without
	stalls []stall
	long   []call
	// end is the latest time of the history.
	end int64
}

// without is a time without a quorum on one node, or on all.
type without struct {
	node        string
	begin, back int64
	pos         int
	// calls were made within it.
	calls []call
}

// call is what is kept of a call.
type call struct {
	kind      history.Kind
	node      string
	code      string
	outcome   history.Outcome
	call, ret int64
	pos       int
}

// stall is a time in which the machine stood still.
type stall struct{ from, to int64 }

func (q *quorum) add(op *history.Op, pos int) {
	q.end = max(q.end, op.Call)
	if op.Return != history.Never {
		q.end = max(q.end, op.Return)
	}
	switch {
	case op.Kind == history.Lost:
		q.open = append(q.open, &without{node: op.Node, begin: op.Return, back: history.Never, pos: pos})
	case op.Kind == history.Back:
		q.back(op)
	case op.Kind == history.Stall:
		q.stalls = append(q.stalls, stall{op.Call, op.Return})
	case op.Kind.IsCall():
		q.count(op, pos)
		for _, w := range q.open {
			w.add(op, pos)
		}
	}
}

// back ends the times without a quorum of a node, or of all.
func (q *quorum) back(op *history.Op) {
	q.open = slices.DeleteFunc(q.open, func(w *without) bool {
		if op.Node != "" && w.node != op.Node {
			return false
		}
		w.back = op.Call
		q.ended = append(q.ended, w)
		return true
	})
}

func (q *quorum) count(op *history.Op, pos int) {
	if q.calls == nil {
		q.calls = make(map[history.Kind]Calls)
	}
	c := q.calls[op.Kind]
	switch op.Outcome {
	case history.OK:
		c.OK++
	case history.Failed:
		c.Failed++
	default:
		c.Unknown++
	}
	took := time.Duration(op.Return - op.Call)
	if took > c.Longest && op.Return != history.Never {
		c.Longest, c.LongestOp = took, pos
	}
	q.calls[op.Kind] = c
	if q.options.Longest > 0 && took > q.options.Longest {
		q.long = append(q.long, keep(op, pos))
	}
}

func keep(op *history.Op, pos int) call {
	return call{op.Kind, op.Node, op.Code, op.Outcome, op.Call, op.Return, pos}
}

// needsQuorum says whether a call cannot succeed without a quorum.
func needsQuorum(op *history.Op) bool {
	if op.Reserve {
		return false
	}
	switch op.Kind {
	case history.Next, history.Seed, history.Delete, history.Claim, history.Release,
		history.Range, history.Return, history.Set, history.Merge:
		return true
	}
	return op.Kind == history.Get && !op.Stale
}

func (w *without) add(op *history.Op, pos int) {
	if needsQuorum(op) && op.Call > w.begin && (w.node == "" || w.node == op.Node) {
		w.calls = append(w.calls, keep(op, pos))
	}
}

// check judges the calls and returns how many there were of each kind.
func (q *quorum) check(f *findings) map[history.Kind]Calls {
	for _, w := range append(q.ended, q.open...) {
		for i := range w.calls {
			q.judge(w, &w.calls[i], f)
		}
	}
	for i := range q.long {
		q.tooLong(&q.long[i], f)
	}
	return q.calls
}

// judge looks at a call that was made without a quorum.
func (q *quorum) judge(w *without, c *call, f *findings) {
	if c.call <= w.begin+int64(q.options.Lease) || c.ret >= w.back {
		return
	}
	switch {
	case c.outcome == history.OK:
		f.violation("quorum/success", c.node, []int{w.pos, c.pos}, "%s was answered at %s, called %s after the quorum was lost",
			c.kind, at(c.ret), time.Duration(c.call-w.begin))
	case !slices.Contains(q.options.Refusals, c.code):
		f.violation("quorum/code", c.node, []int{w.pos, c.pos}, "%s ended with the code %q without a quorum", c.kind, c.code)
	}
}

// tooLong looks at a call that took longer than allowed: it may have been the
// machine.
func (q *quorum) tooLong(c *call, f *findings) {
	until := min(c.ret, q.end)
	took := until - c.call
	for _, s := range q.stalls {
		took -= max(min(s.to, until)-max(s.from, c.call), 0)
	}
	if time.Duration(took) <= q.options.Longest {
		return
	}
	f.violation("quorum/late", c.node, []int{c.pos}, "%s took %s, more than %s (returned at %s)", c.kind, time.Duration(took),
		q.options.Longest, at(c.ret))
}
