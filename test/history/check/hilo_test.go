package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// rng is a range, back a return of it, and use a use of its numbers.
func rng(low, high, call, ret int64, options ...option) history.Op {
	return op(history.Range, call, ret, append([]option{bounds(low, high), tag("A")}, options...)...)
}

func back(low, high, last, call, ret int64, options ...option) history.Op {
	return op(history.Return, call, ret, append([]option{bounds(low, high), returned(last)}, options...)...)
}

func use(low, high, first, last, call int64, options ...option) history.Op {
	return op(history.Use, call, call, append([]option{bounds(low, high), tag("A"), got(first, last)}, options...)...)
}

func ignored(o *history.Op) { o.Returned = false }

func TestHiLoRanges(t *testing.T) {
	verdicts{
		{"a range is given out twice", "hilo/overlap", []history.Op{rng(1, 32, 0, 1), rng(1, 32, 2, 3)}},
		{"a number is used twice", "hilo/twice", []history.Op{
			rng(1, 32, 0, 1), use(1, 32, 1, 5, 2), use(1, 32, 5, 5, 3),
		}},
		{"Max goes down without a return", "hilo/overlap", []history.Op{rng(1, 32, 0, 1), rng(33, 64, 2, 3), rng(33, 96, 4, 5)}},
		{"a range whose answer was lost is a hole", "", []history.Op{
			rng(1, 32, 0, 1), op(history.Range, 2, 3, unknown), rng(65, 96, 4, 5),
		}},
		{"a range ends below one that was there", "hilo/high", []history.Op{rng(33, 64, 0, 1), rng(1, 32, 2, 3)}},
		{"a range of one node with another's tag", "hilo/tag", []history.Op{
			rng(1, 32, 0, 1), rng(33, 64, 2, 3, tag("B")), use(33, 64, 33, 33, 4, tag("A")),
		}},
		{"a number of no range", "hilo/foreign", []history.Op{rng(1, 32, 0, 1), use(33, 64, 33, 33, 4)}},
		{"a number beyond its range", "hilo/foreign", []history.Op{rng(1, 32, 0, 1), use(1, 32, 30, 33, 4)}},
		{"a number before its range", "hilo/foreign", []history.Op{use(1, 32, 1, 1, 0), rng(1, 32, 1, 2)}},
		{"a range smaller than asked for", "hilo/size", []history.Op{rng(1, 32, 0, 1, counts(64))}},
		{"a range that wrapped", "hilo/size", []history.Op{rng(-5, 32, 0, 1)}},
		{
			"tags and databases are independent", "",
			[]history.Op{rng(1, 32, 0, 1), rng(1, 32, 0, 1, db("other")), rng(1, 32, 0, 1, name("users"))},
		},
	}.run(t)
}

func TestHiLoReturns(t *testing.T) {
	verdicts{
		{"one High for two ranges", "hilo/high", []history.Op{rng(1, 32, 0, 1), back(1, 32, 0, 2, 3), rng(1, 32, 4, 5)}},
		{
			"a range after a return", "",
			[]history.Op{rng(1, 32, 0, 1), back(1, 32, 10, 2, 3), rng(11, 42, 4, 5), use(1, 32, 1, 10, 6), use(11, 42, 11, 12, 7)},
		},
		{"a return beside the next range", "", []history.Op{rng(1, 32, 0, 1), back(1, 32, 10, 2, 9), rng(11, 42, 3, 5)}},
		{"the next range before the return", "hilo/overlap", []history.Op{rng(1, 32, 0, 1), rng(11, 42, 2, 3), back(1, 32, 10, 4, 5)}},
		{"used numbers are given out again", "hilo/overlap", []history.Op{rng(1, 32, 0, 1), back(1, 32, 10, 2, 3), rng(10, 42, 4, 5)}},
		{"a late duplicate of a return", "hilo/return", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 10, 2, 3), rng(11, 33, 4, 5), back(1, 32, 10, 6, 7),
		}},
		{"a repeated return that does nothing", "", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 10, 2, 3), rng(11, 33, 4, 5), back(1, 32, 10, 6, 7, ignored),
		}},
		{"a return below its range", "hilo/return", []history.Op{rng(1, 32, 0, 1), rng(33, 64, 2, 3), back(33, 64, 20, 4, 5)}},
		{"a return above its range", "hilo/return", []history.Op{rng(1, 32, 0, 1), back(1, 32, 40, 4, 5)}},
		{"a return of another's range", "hilo/return", []history.Op{rng(1, 32, 0, 1), back(2, 32, 10, 4, 5)}},
		{"a return of nobody's range", "hilo/return", []history.Op{rng(1, 32, 0, 1), back(33, 64, 40, 4, 5)}},
		{"a return of a range that is not the newest", "hilo/newest", []history.Op{rng(1, 32, 0, 1), rng(33, 64, 2, 3), back(1, 32, 10, 4, 5)}},
		{"a return of a prefetched range, then of the current one", "", []history.Op{
			rng(1, 32, 0, 1), rng(33, 96, 2, 3), back(33, 96, 32, 4, 5), back(1, 32, 10, 6, 7), rng(11, 97, 8, 9),
		}},
		{"the same in the wrong order", "hilo/newest", []history.Op{
			rng(1, 32, 0, 1), rng(33, 96, 2, 3), back(1, 32, 10, 4, 5), back(33, 96, 32, 6, 7),
		}},
		{"a return behind a used range", "hilo/newest", []history.Op{
			rng(1, 32, 0, 1), rng(33, 96, 2, 3), back(33, 96, 33, 4, 5), back(1, 32, 10, 6, 7),
		}},
		{"a return of unknown outcome", "", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 10, 2, 3, unknown), rng(11, 33, 14, 15),
		}},
		{"a return of unknown outcome gives no used numbers back", "hilo/overlap", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 10, 2, 3, unknown), rng(10, 33, 14, 15),
		}},
		{"a number that was given back", "hilo/foreign", []history.Op{rng(1, 32, 0, 1), back(1, 32, 10, 2, 3), use(1, 32, 11, 11, 4)}},
	}.run(t)
}

func TestHiLoRetries(t *testing.T) {
	verdicts{
		{"a return with its request id again", "", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 10, 2, 3, request("r")), rng(11, 33, 4, 5), back(1, 32, 10, 6, 7, request("r")),
		}},
		{"a range retried with its request id", "", []history.Op{
			op(history.Range, 0, 1, unknown, request("r")), rng(33, 64, 2, 3), rng(1, 32, 4, 5, request("r")), rng(1, 32, 6, 7, request("r")),
		}},
		{"a range retried and answered again", "requests/answers", []history.Op{rng(1, 32, 2, 3, request("r")), rng(33, 64, 4, 5, request("r"))}},
		{"a retried range with the second server's tag", "requests/answers", []history.Op{
			rng(1, 32, 2, 3, request("r")), rng(1, 32, 4, 5, request("r"), tag("B")),
		}},
	}.run(t)
}

func TestHiLoReserves(t *testing.T) {
	verdicts{
		{"a range from a reserve below others", "", []history.Op{rng(65, 96, 0, 1), rng(1, 8, 2, 3, reserve), rng(9, 16, 4, 5, reserve)}},
		{"a range from a reserve twice", "hilo/overlap", []history.Op{rng(1, 8, 2, 3, reserve), rng(1, 8, 4, 5, reserve)}},
		{"a range from a reserve that was given before", "hilo/overlap", []history.Op{rng(1, 32, 0, 1), rng(9, 16, 2, 3, reserve)}},
		{"a number of a reserve used twice", "hilo/twice", []history.Op{rng(1, 8, 0, 1, reserve), use(1, 8, 2, 2, 2), use(1, 8, 2, 2, 3)}},
		{
			"a reserve answers a request id again", "",
			[]history.Op{rng(1, 8, 0, 1, reserve, request("r")), rng(1, 8, 2, 3, reserve, request("r"))},
		},
		{"another node answers a request id from its reserve", "", []history.Op{
			rng(1, 8, 0, 1, reserve, request("r")), rng(33, 40, 2, 3, reserve, request("r"), tag("B")), rng(65, 96, 4, 5, request("r")),
		}},
		{"the cluster answers a request id that a reserve answered meanwhile", "", []history.Op{
			rng(1, 8, 0, 1, reserve, request("r")), rng(41, 48, 2, 3), rng(33, 40, 4, 5, request("r")),
		}},
		{"a range from a reserve that was given back before", "", []history.Op{
			rng(1, 8, 0, 1), back(1, 8, 0, 2, 3), rng(1, 8, 4, 5, reserve), use(1, 8, 1, 8, 6),
		}},
		{"two reserves have the same numbers", "hilo/overlap", []history.Op{
			rng(1, 8, 0, 1, reserve, request("r")), rng(1, 8, 2, 3, reserve, request("r"), tag("B")),
		}},
	}.run(t)
}

func TestHiLoMergesAndSets(t *testing.T) {
	verdicts{
		{"a range below a merged value", "hilo/merged", []history.Op{
			rng(1, 32, 0, 1), op(history.Merge, 2, 3, value(20)), op(history.Merge, 2, 4, value(5)), back(1, 32, 0, 5, 6), rng(1, 33, 7, 8),
		}},
		{"numbers below a merged value, set by a client", "hilo/merged", []history.Op{
			op(history.Merge, 2, 3, value(20)), op(history.Set, 4, 5, expected(19), value(32), result(32)),
		}},
		{"a range beside a merge", "", []history.Op{op(history.Merge, 2, 4, value(20)), rng(1, 32, 3, 5)}},
		{"a range above a merged value", "", []history.Op{
			rng(1, 32, 0, 1), back(1, 32, 20, 2, 3), op(history.Merge, 2, 4, value(20)), rng(21, 52, 5, 6),
		}},
		{"two clients set the same numbers", "hilo/overlap", []history.Op{
			op(history.Set, 0, 1, expected(0), value(32), result(32)), op(history.Set, 0, 1, expected(0), value(32), result(32)),
		}},
		{"a client sets, another gets the next range", "", []history.Op{
			op(history.Set, 0, 1, expected(0), value(32), result(32)), rng(33, 64, 2, 3),
		}},
	}.run(t)
}

// A correct counter, as simple as can be, passes; the same history with one
// range or one return changed does not, unless the change says nothing.
func TestHiLoOfARandomCorrectCounter(t *testing.T) {
	caught, refused := 0, 0
	const runs = 2000
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 0))
		ops := randomHiLo(r)
		if report := check.Ops(ops, check.Options{}); !report.OK() {
			t.Fatalf("seed %d: %v in\n%s", seed, report.Violations, show(ops))
		}
		if found := searched(t, ops); len(found) > 0 {
			t.Fatalf("seed %d: %v in\n%s", seed, found, show(ops))
		}
		i := r.IntN(len(ops))
		ops[i].Low, ops[i].High = ops[i].Low-1-r.Int64N(3), ops[i].High-1-r.Int64N(3)
		if ops[i].Outcome == history.OK && !check.Ops(ops, check.Options{}).OK() {
			caught++
		}
		if ops[i].Outcome == history.OK && len(searched(t, ops)) > 0 {
			refused++
		}
	}
	if caught < runs/2 || refused < runs/2 {
		t.Errorf("of %d changed histories %d were found, and Porcupine refuses %d", runs, caught, refused)
	}
}

// randomHiLo is what clients of a correct counter see: calls take effect one by
// one, their times lie around that.
func randomHiLo(r *rand.Rand) []history.Op {
	var ops, chain []history.Op
	var top, peak int64
	for i := range int64(4 + r.IntN(30)) {
		moment := 10 * i
		o := op(history.Range, moment-r.Int64N(25), moment+r.Int64N(25), tag("A"))
		if r.IntN(5) == 0 {
			o.Outcome = history.Unknown
		}
		if n := len(chain); n > 0 && r.IntN(2) == 0 && chain[n-1].Outcome == history.OK && chain[n-1].Return < moment {
			newest := chain[n-1]
			o.Kind, o.Low, o.High, o.Returned = history.Return, newest.Low, newest.High, true
			o.Call = max(o.Call, newest.Return)
			o.Last = o.Low - 1 + r.Int64N(2)*r.Int64N(o.High-o.Low+2)
			chain = chain[:n-1]
			if o.Last >= o.Low {
				chain = nil
			}
			top, o.Result = o.Last, o.Last
			ops = append(ops, o)
			continue
		}
		o.Low, o.High = top+1, max(top+32, peak+1)
		top, peak = o.High, o.High
		chain = append(chain, o)
		ops = append(ops, o)
	}
	slices.SortStableFunc(ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	return ops
}
