package check

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idnode/idnode/test/history"
)

// maxCalls is how many calls on one object Porcupine is given: it remembers, for each
// step, which calls it has placed, so its memory grows with the square.
const maxCalls = 20_000

// linearizer gives a history to Porcupine, a checker that nobody here wrote. It
// judges each identity, each HiLo tag and each claimed id that belongs to no identity by itself,
// because linearizability is a property of each object. The models say what a call does;
// Porcupine searches for an order of the calls.
//
// The search takes exponential time in the worst case, so it is bounded, and what was
// not judged is said. A call of unknown outcome may take effect at any time after its
// call, or never. It is placed only where it explains an answer that could not be
// explained without it; elsewhere it is as good as never made. Of calls that ask the
// same, the earlier one is placed first, because the two can always be exchanged.
//
// Only successful calls are promised to be linearizable: what a refusal says, and stale
// reads, are not looked at.
type linearizer struct {
	limit    time.Duration
	objects  map[objectKey][]*linearCall
	requests map[counterKey]*linearCall
	verdict  Searched
}

// Searched is what Porcupine judged of a history. Its violations are the Report's.
type Searched struct {
	// Objects and Calls are how many were judged.
	Objects, Calls int
	// NotJudged says what was not judged, and why; Left is how many calls that are.
	NotJudged []string
	Left      int

	disorders []disorder
	limit     time.Duration
}

// disorder is calls on one object for which there is no order.
type disorder struct {
	calls []*linearCall
	model porcupine.Model
}

// linearCall is a call with all its tries.
type linearCall struct {
	history.Op
	pos int
	// class is that of the unknown calls that ask the same, or none; order is which one of
	// them it is.
	class, order int
}

func (c *linearCall) unknown() bool { return c.Outcome == history.Unknown }

// objectKey names an object: identities and HiLo tags are apart.
type objectKey struct {
	what, database, name string
}

func (k objectKey) String() string {
	return k.what + " " + counterKey{k.database, k.name}.String()
}

// newLinearizer makes one that searches at most so long for each object.
func newLinearizer(limit time.Duration) *linearizer {
	return &linearizer{
		limit: limit, objects: make(map[objectKey][]*linearCall), requests: make(map[counterKey]*linearCall),
		verdict: Searched{limit: limit},
	}
}

// add takes an operation of the history in.
func (l *linearizer) add(op *history.Op, pos int, f *findings) {
	if op.Outcome == history.Failed || op.Stale {
		return
	}
	key := objectKey{"identity", op.Database, op.Name}
	switch op.Kind {
	case history.Next, history.Seed, history.Get, history.Delete:
	case history.Claim, history.Release:
		if op.Name == "" {
			key = objectKey{"id", op.Database, op.ID}
		}
	case history.Range, history.Return, history.Set, history.Merge:
		key.what = "HiLo tag"
	default:
		return
	}
	if op.Request == "" || op.Reserve { // only its node remembers what it gave from a reserve
		l.objects[key] = append(l.objects[key], &linearCall{Op: *op, pos: pos})
		return
	}
	id := counterKey{op.Database, op.Request}
	first := l.requests[id]
	if first == nil {
		first = &linearCall{Op: *op, pos: pos}
		l.requests[id] = first
		l.objects[key] = append(l.objects[key], first)
		return
	}
	first.again(op, pos, f)
}

// again takes a further try of a call in, which makes no second call of it: it begins
// with the first try, and has happened by the first answer.
func (c *linearCall) again(op *history.Op, pos int, f *findings) {
	call := min(c.Call, op.Call)
	switch {
	case op.Outcome == history.Unknown:
	case c.unknown():
		c.Op, c.pos = *op, pos
	case !sameAnswer(&c.Op, op):
		f.violation("porcupine/request", op.Request, []int{c.pos, pos}, "one request has two answers")
	default:
		c.Return = min(c.Return, op.Return)
	}
	c.Call = call
}

// check judges what was added.
func (l *linearizer) check(f *findings) *Searched {
	keys := make([]objectKey, 0, len(l.objects))
	for key := range l.objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b objectKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		l.judge(key, l.objects[key], f)
	}
	return &l.verdict
}

func (l *linearizer) judge(key objectKey, calls []*linearCall, f *findings) {
	slices.SortStableFunc(calls, func(a, b *linearCall) int { return cmp.Compare(a.Call, b.Call) })
	if len(calls) > maxCalls {
		l.notJudged(key, len(calls)-maxCalls, "they come after the first %d", maxCalls)
		calls = until(calls, maxCalls)
	}
	model, why := modelOf(key, calls)
	if why != "" {
		l.notJudged(key, len(calls), "%s", why)
		return
	}
	switch porcupine.CheckOperationsTimeout(model, operations(calls), l.limit) {
	case porcupine.Unknown:
		l.notJudged(key, len(calls), "no verdict within %s", l.limit)
		return
	case porcupine.Illegal:
		found := shortest(key, calls, l.limit)
		l.verdict.disorders = append(l.verdict.disorders, found)
		n := len(found.calls)
		f.violation("porcupine/order", key.String(), []int{found.calls[n-1].pos}, "no order explains the answers of the first %d calls", n)
	}
	l.verdict.Objects++
	l.verdict.Calls += len(calls)
}

func (l *linearizer) notJudged(key objectKey, calls int, format string, args ...any) {
	l.verdict.Left += calls
	l.verdict.NotJudged = append(l.verdict.NotJudged, fmt.Sprintf("%d calls on %s: %s", calls, key, fmt.Sprintf(format, args...)))
}

// until returns the first n calls. What had not returned when the next one was made may
// have happened after it, so its answer says nothing of the others.
func until(calls []*linearCall, n int) []*linearCall {
	if n >= len(calls) {
		return calls
	}
	first := make([]*linearCall, n)
	for i, c := range calls[:n] {
		if c.Return >= calls[n].Call && !c.unknown() {
			open := *c
			open.Outcome, open.Return = history.Unknown, history.Never
			c = &open
		}
		first[i] = c
	}
	return first
}

// shortest finds the fewest first calls for which there is no order: the last of them is
// the first that cannot be explained.
func shortest(key objectKey, calls []*linearCall, limit time.Duration) disorder {
	n := sort.Search(len(calls), func(n int) bool {
		some := until(calls, n)
		model, _ := modelOf(key, some)
		return porcupine.CheckOperationsTimeout(model, operations(some), limit) == porcupine.Illegal
	})
	calls = until(calls, n)
	model, _ := modelOf(key, calls)
	return disorder{calls: calls, model: model}
}

// Visualize writes Porcupine's page of each object that is not linearizable into the
// folder, for a browser.
func (s *Searched) Visualize(folder string) error {
	for i, found := range s.disorders {
		_, info := porcupine.CheckOperationsVerbose(found.model, operations(found.calls), s.limit)
		page := filepath.Join(folder, fmt.Sprintf("porcupine-%d.html", i+1))
		if err := porcupine.VisualizePath(found.model, info, page); err != nil {
			return err
		}
	}
	return nil
}

// operations puts the calls as Porcupine wants them. Its page has a row for each client,
// so a client here is a row in which no two calls are at the same time.
func operations(calls []*linearCall) []porcupine.Operation {
	all := make([]porcupine.Operation, len(calls))
	var rows []int64 // when the last call of each row returns
	for i, c := range calls {
		ret := c.Return
		if c.unknown() {
			ret = history.Never
		}
		row := slices.IndexFunc(rows, func(end int64) bool { return end < c.Call })
		if row < 0 {
			row = len(rows)
			rows = append(rows, 0)
		}
		rows[row] = ret
		all[i] = porcupine.Operation{ClientId: row, Input: c, Call: c.Call, Return: ret}
	}
	return all
}

func (s *Searched) write(p *printer) {
	p.printf("  Porcupine judged %d calls on %d identities, tags and ids; %d calls not\n", s.Calls, s.Objects, s.Left)
	for _, why := range s.NotJudged {
		p.printf("  Porcupine did not judge %s\n", why)
	}
}
