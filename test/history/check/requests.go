package check

import (
	"fmt"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// requests makes one call of all tries of a request id.
//
// The call begins with its first try, because an earlier try may be the one that
// took effect, and ends with the first answer, because by then it had taken
// effect. A try that certainly failed did nothing and says nothing. Tries that were
// answered from a reserve are calls of their own, one for each range. Request ids
// are unique per database, so the same id for another counter is another
// request, which must be refused.
//
// A call that began before a recovery is answered as it was then, or not at all: whether the lost members
// knew it nobody can tell, so it never takes effect in the log after the recovery.
type requests struct {
	byID map[counterKey]int
	list []request
	// recoveries are events.
	recoveries []request
}

// request is a call with what is known of all its tries.
type request struct {
	history.Op
	pos int
}

// add takes a try in.
func (r *requests) add(op *history.Op, pos int, f *findings) {
	if r.byID == nil {
		r.byID = make(map[counterKey]int)
	}
	key := counterKey{op.Database, op.Request}
	if op.Reserve {
		// The cluster may have given a range too, of which this try knows nothing.
		lost := *op
		lost.Reserve, lost.Outcome, lost.Return, lost.Low, lost.High, lost.Tag = false, history.Unknown, history.Never, 0, 0, ""
		r.add(&lost, pos, f)
		// Only the process that answered remembers its own: a try elsewhere gets another.
		key.name = fmt.Sprint(op.Request, " in reserve ", op.Tag, op.Low)
	}
	i, known := r.byID[key]
	if !known {
		r.byID[key] = len(r.list)
		r.list = append(r.list, request{*op, pos})
		return
	}
	r.list[i].merge(op, pos, f)
}

// merge takes a further try in.
func (r *request) merge(op *history.Op, pos int, f *findings) {
	where := fmt.Sprintf("request id %q of database %q", op.Request, op.Database)
	switch {
	case op.Outcome == history.Failed:
		return
	case r.Outcome == history.Failed:
		*r = request{*op, pos}
		return
	case !sameQuestion(&r.Op, op):
		if r.Outcome == history.OK && op.Outcome == history.OK {
			f.violation("requests/reused", where, []int{r.pos, pos}, "two different requests were answered under one id")
			return
		}
		f.unknown("requests/reused", where, []int{r.pos, pos},
			"two different requests were made under one id, and it is not known which one took effect")
		return
	case r.Outcome == history.OK && op.Outcome == history.OK && !sameAnswer(&r.Op, op):
		f.violation("requests/answers", where, []int{r.pos, pos}, "answered differently: first %s, then %s", answer(&r.Op), answer(op))
		return
	}
	r.Call = min(r.Call, op.Call)
	switch {
	case op.Outcome != history.OK:
	case r.Outcome == history.OK:
		r.Return = min(r.Return, op.Return)
	default:
		first := r.Call
		*r = request{*op, pos}
		r.Call = first
	}
}

// recovered finds calls from before a recovery that took effect in the log after it.
func (r *requests) recovered(f *findings) {
	for _, e := range r.recoveries {
		for _, call := range r.list {
			if call.Outcome == history.OK && call.Call < e.Call && call.Index > e.Index {
				f.violation("requests/recovered", fmt.Sprintf("request id %q of database %q", call.Request, call.Database),
					[]int{call.pos, e.pos}, "tried before a recovery, it took effect at log index %d, after the recovery's %d", call.Index, e.Index)
			}
		}
	}
}

// sameQuestion says whether two tries ask the same.
func sameQuestion(a, b *history.Op) bool {
	if a.Kind != b.Kind || a.Name != b.Name || a.ID != b.ID || count(a) != count(b) || a.Value != b.Value {
		return false
	}
	if a.Force != b.Force || a.Forget != b.Forget || a.Last != b.Last {
		return false
	}
	if a.Kind == history.Return && (a.Low != b.Low || a.High != b.High) {
		return false
	}
	return (a.Expected == nil) == (b.Expected == nil) && (a.Expected == nil || *a.Expected == *b.Expected)
}

// sameAnswer says whether two tries were answered the same. The node tag of a
// range belongs to the answer: it is the first server's.
func sameAnswer(a, b *history.Op) bool {
	same := a.Result == b.Result && a.Returned == b.Returned && a.Tag == b.Tag && slices.Equal(a.Blocks, b.Blocks)
	return same && (a.Kind != history.Range && a.Kind != history.Lease || a.Low == b.Low && a.High == b.High)
}

// answer shows what a call was answered.
func answer(op *history.Op) string {
	switch op.Kind {
	case history.Next, history.Etag:
		return fmt.Sprint(op.Blocks)
	case history.Range:
		return fmt.Sprintf("%d–%d of node %q", op.Low, op.High, op.Tag)
	case history.Return:
		return fmt.Sprintf("returned %t, Max %d", op.Returned, op.Result)
	}
	return fmt.Sprint(op.Result)
}

// count is how many numbers a call asks for.
func count(op *history.Op) int64 {
	if op.Kind == history.Range {
		return op.Count // 0 leaves it open
	}
	return max(op.Count, 1)
}
