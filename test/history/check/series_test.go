package check_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// take, end and find are calls on a key, answered with its number and state.
func take(call, ret int64, key string, number int64, options ...option) history.Op {
	return op(history.Take, call, ret, append([]option{id(key), result(number), tag("open")}, options...)...)
}

func end(call, ret int64, key, state string, number int64, options ...option) history.Op {
	return op(history.End, call, ret, append([]option{id(key), tag(state), result(number)}, options...)...)
}

func find(call, ret int64, key, state string, number int64) history.Op {
	return op(history.Find, call, ret, id(key), tag(state), result(number))
}

func TestSeries(t *testing.T) {
	verdicts{
		{"one after the other", "", []history.Op{take(1, 2, "a", 1), take(3, 4, "b", 2), take(5, 6, "a", 1)}},
		{"two at once, the later first", "", []history.Op{take(1, 9, "a", 2), take(2, 8, "b", 1)}},
		{"two keys have one number", "series/twice", []history.Op{take(1, 2, "a", 1), take(3, 4, "b", 1)}},
		{"a number below 1", "series/twice", []history.Op{take(1, 2, "a", -1)}},
		{"a key has two numbers", "series/changed", []history.Op{take(1, 2, "a", 1), take(3, 4, "b", 2), take(5, 6, "a", 3)}},
		{
			"a key has another number in the end", "series/changed",
			[]history.Op{take(1, 2, "a", 1), take(3, 4, "b", 2), find(5, 6, "a", "open", 2)},
		},
		{"a lower number came later", "series/order", []history.Op{take(1, 2, "a", 2), take(3, 4, "b", 1)}},
		{
			"a lower number came later, far below", "series/order",
			[]history.Op{take(1, 2, "a", 1), take(3, 4, "b", 3), take(5, 6, "c", 2), take(7, 8, "d", 4)},
		},
		{
			"asked for first by a call whose outcome is unknown", "",
			[]history.Op{take(1, 0, "b", 0, unknown), take(2, 3, "a", 2), take(4, 5, "b", 1)},
		},
		{"a hole", "series/hole", []history.Op{take(1, 2, "a", 1), take(3, 4, "b", 3)}},
		{"a hole below the first", "series/hole", []history.Op{take(1, 2, "a", 2)}},
		{"a hole that an unknown call explains", "", []history.Op{take(1, 0, "x", 0, unknown), take(2, 3, "b", 2)}},
		{"a hole that was there before the unknown call", "series/hole", []history.Op{take(1, 2, "b", 2), take(3, 0, "x", 0, unknown)}},
		{
			"two holes and one key, asked for twice", "series/hole",
			[]history.Op{take(1, 0, "x", 0, unknown), take(2, 0, "x", 0, unknown), take(3, 4, "b", 3)},
		},
		{"a failed call explains nothing", "series/hole", []history.Op{take(1, 2, "x", 0, failed), take(3, 4, "b", 2)}},
		{"the key of a failed call has no number", "", []history.Op{take(1, 2, "x", 0, failed), take(3, 4, "b", 1)}},
		{"nobody asked for it", "series/nobody", []history.Op{take(1, 2, "a", 1), find(3, 4, "b", "open", 2)}},
		{
			"confirmed, and asked for again", "",
			[]history.Op{take(1, 2, "a", 1), end(3, 4, "a", "confirmed", 1), take(5, 6, "a", 1, tag("confirmed"))},
		},
		{"open after it was confirmed", "series/state", []history.Op{take(1, 2, "a", 1), end(3, 4, "a", "confirmed", 1), take(5, 6, "a", 1)}},
		{"open while it is confirmed", "", []history.Op{take(1, 2, "a", 1), end(3, 9, "a", "confirmed", 1), take(5, 6, "a", 1)}},
		{"confirmed and voided", "series/state", []history.Op{take(1, 2, "a", 1), end(3, 4, "a", "confirmed", 1), end(3, 4, "a", "voided", 1)}},
		{
			"voided, and found confirmed", "series/state",
			[]history.Op{take(1, 2, "a", 1), end(3, 4, "a", "voided", 1), find(5, 6, "a", "confirmed", 1)},
		},
		{
			"perhaps voided, and found confirmed", "",
			[]history.Op{take(1, 2, "a", 1), end(3, 0, "a", "voided", 0, unknown), end(4, 5, "a", "confirmed", 1), find(6, 7, "a", "confirmed", 1)},
		},
		{"another series", "", []history.Op{take(1, 2, "a", 1), take(3, 4, "a", 1, name("bills"))}},
	}.run(t)
}

// TestSeriesOfRandomCalls: histories of a right series are right, and one in which two
// numbers are exchanged, of keys whose calls did not overlap, is not.
func TestSeriesOfRandomCalls(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		numbers, last := map[string]int64{}, int64(0)
		var ops []history.Op
		for now := int64(100); now < 4000; now += random.Int64N(30) {
			key := fmt.Sprint(random.IntN(60))
			call, ret := now-random.Int64N(100), now+random.Int64N(100)
			if random.IntN(5) == 0 {
				ops = append(ops, take(call, history.Never, key, 0, unknown))
				if random.IntN(2) == 0 {
					continue
				}
			}
			if numbers[key] == 0 {
				last++
				numbers[key] = last
			}
			ops = append(ops, take(call, ret, key, numbers[key]))
		}
		if r := check.Ops(ops, check.Options{}); !r.OK() || r.SeriesNumbers != int64(len(numbers)) {
			t.Fatalf("seed %d: %v, %d numbers of %d", seed, r.Violations, r.SeriesNumbers, len(numbers))
		}
		for i := range ops { // Numbers 1 and last are far apart.
			switch ops[i].Result {
			case 1:
				ops[i].Result = last
			case last:
				ops[i].Result = 1
			}
		}
		if check.Ops(ops, check.Options{}).OK() {
			t.Errorf("seed %d: an exchange is not found", seed)
		}
	}
}
