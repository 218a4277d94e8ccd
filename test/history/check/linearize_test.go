package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// TestSwappedValueIsRefusedByBoth is the positive control of a whole run: four thousand
// calls of 64 callers, one of a hundred without an answer, in which two callers have
// each other's value.
func TestSwappedValueIsRefusedByBoth(t *testing.T) {
	var ops []history.Op
	stream(4000, func(op *history.Op) {
		one := *op
		one.Blocks = slices.Clone(op.Blocks)
		ops = append(ops, one)
	})
	judge := func() *check.Report {
		t.Helper()
		begin := time.Now()
		report := check.Ops(ops, check.Options{Search: time.Minute})
		t.Logf("%d calls judged in %s", report.Searched.Calls, time.Since(begin))
		if len(report.Searched.NotJudged) > 0 {
			t.Errorf("not judged: %v", report.Searched.NotJudged)
		}
		return report
	}
	if err := judge().Err(); err != nil {
		t.Fatalf("a history that is right: %s", err)
	}
	same := func(from int) int {
		return from + slices.IndexFunc(ops[from:], func(op history.Op) bool { return op.Name == "orders" && op.Outcome == history.OK })
	}
	a, b := &ops[same(1000)], &ops[same(1500)]
	a.Blocks, b.Blocks = b.Blocks, a.Blocks
	report := judge()
	for _, by := range []string{"identities/", "porcupine/order"} {
		if !slices.ContainsFunc(report.Violations, func(v check.Violation) bool { return strings.HasPrefix(v.Rule, by) }) {
			t.Errorf("%s does not refuse it: %v", by, report.Violations)
		}
	}
	folder := t.TempDir()
	if err := report.Searched.Visualize(folder); err != nil {
		t.Fatal(err)
	}
	if page, err := os.ReadFile(filepath.Join(folder, "porcupine-1.html")); err != nil || !strings.Contains(string(page), "<html") {
		t.Errorf("the page of the calls: %v", err)
	}
}

// TestPorcupineJudges has what each model says: of HiLo tags, of ids that belong to no
// identity, and of claims that an identity meets.
func TestPorcupineJudges(t *testing.T) {
	lost := func(kind history.Kind, call int64, options ...option) history.Op {
		return op(kind, call, call, append(options, unknown)...)
	}
	claimed := func(kind history.Kind, call, ret, number int64) history.Op { return op(kind, call, ret, value(number)) }
	plain := func(kind history.Kind, call, ret int64) history.Op {
		return op(kind, call, ret, name(""), id("users/ayende"))
	}
	for _, c := range []struct {
		name  string
		right bool
		ops   []history.Op
	}{
		{"ranges one behind the other", true, []history.Op{op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(33, 64))}},
		{
			"a range that nobody asked for is missing", false,
			[]history.Op{op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(65, 96))},
		},
		{"a range whose answer was lost", true, []history.Op{
			lost(history.Range, 0), op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(65, 96)),
		}},
		{"a range lost after the gap", false, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(65, 96)), lost(history.Range, 4),
		}},
		{"a range given back and out again", true, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Return, 2, 3, bounds(1, 32), returned(10)), op(history.Range, 4, 5, bounds(11, 33)),
		}},
		{"a range out again before it is given back", false, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(11, 33)), op(history.Return, 4, 5, bounds(1, 32), returned(10)),
		}},
		{"a range given back that is not the newest", false, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Range, 2, 3, bounds(33, 64)), op(history.Return, 4, 5, bounds(1, 32), returned(10)),
		}},
		{"Max is set above a value that it did not have", false, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Set, 2, 3, expected(31), value(40), result(40)),
		}},
		{"Max is set", true, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Set, 2, 3, expected(32), value(40), result(40)),
			op(history.Range, 4, 5, bounds(41, 72)),
		}},
		{"a return whose answer was lost, and one that was never made", true, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), lost(history.Return, 2, bounds(1, 32)), op(history.Range, 3, 4, bounds(1, 33)),
			lost(history.Return, 5, bounds(1, 33)), op(history.Range, 6, 7, bounds(34, 65)),
		}},
		{"two ranges end at one number", false, []history.Op{
			op(history.Range, 0, 1, bounds(1, 32)), op(history.Return, 2, 3, bounds(1, 32), returned(0)), op(history.Range, 4, 5, bounds(1, 32)),
		}},
		{"a lost range given out again", false, []history.Op{
			lost(history.Range, 0), op(history.Range, 2, 3, bounds(33, 64)), op(history.Return, 4, 5, bounds(33, 64), returned(32)),
			op(history.Range, 6, 7, bounds(1, 65)),
		}},
		{"a merge is forgotten", false, []history.Op{op(history.Merge, 0, 1, value(100)), op(history.Range, 2, 3, bounds(1, 32))}},
		{"an id is claimed twice", false, []history.Op{plain(history.Claim, 0, 1), plain(history.Claim, 2, 3)}},
		{
			"an id is claimed again after its release", true,
			[]history.Op{plain(history.Claim, 0, 1), plain(history.Release, 2, 3), plain(history.Claim, 4, 5)},
		},
		{"an id is released that nobody has", false, []history.Op{plain(history.Release, 0, 1)}},
		{
			"a claimed value is stepped over", true,
			[]history.Op{claimed(history.Claim, 0, 1, 2), op(history.Next, 2, 3, got(1, 1)), op(history.Next, 4, 5, got(3, 3))},
		},
		{"a claimed value is issued", false, []history.Op{claimed(history.Claim, 0, 1, 1), op(history.Next, 2, 3, got(1, 1))}},
		{"an issued value is claimed", false, []history.Op{op(history.Next, 0, 1, got(1, 1)), claimed(history.Claim, 2, 3, 1)}},
		{
			"one request counts twice", false,
			[]history.Op{op(history.Next, 0, 1, got(1, 1), request("r")), op(history.Next, 2, 3, got(2, 2), request("r"))},
		},
		{"a read misses what was answered", false, []history.Op{op(history.Next, 0, 1, got(1, 1)), op(history.Get, 2, 3, result(0))}},
		{
			"a read sees what is not answered yet", true,
			[]history.Op{lost(history.Next, 0), op(history.Get, 2, 3, result(1)), op(history.Next, 4, 5, got(2, 2))},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if found := searched(t, c.ops); (len(found) == 0) != c.right {
				t.Errorf("Porcupine finds %v, want a history that is right: %t", found, c.right)
			}
		})
	}
}

// TestPorcupineSaysWhatItLeavesOut: claims on a name that is set back, and tags of which
// ranges come from a reserve, are not judged, and the report says so.
func TestPorcupineSaysWhatItLeavesOut(t *testing.T) {
	for _, c := range []struct {
		name, want string
		ops        []history.Op
	}{
		{
			"a claim on a name that is set back", "2 calls on identity default/orders: ids are claimed of a name that is set back",
			[]history.Op{op(history.Claim, 0, 1, value(7)), op(history.Seed, 2, 3, force, value(2), result(2))},
		},
		{
			"ranges of a reserve in another order", "3 calls on HiLo tag default/orders: ranges come from a node's reserve",
			[]history.Op{
				op(history.Range, 0, 1, bounds(65, 96), reserve), op(history.Range, 2, 3, bounds(97, 128)),
				op(history.Range, 4, 5, bounds(1, 64), reserve),
			},
		},
		{
			"a retry gets a range of the counter", "2 calls on HiLo tag default/orders: ranges come from a node's reserve",
			[]history.Op{
				op(history.Range, 0, 1, bounds(1, 32), reserve, request("r")), op(history.Range, 2, 3, bounds(65, 96), request("r")),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := append(c.ops, op(history.Next, 6, 7, name("other"), got(1, 1)))
			report := check.Ops(ops, check.Options{Search: time.Minute})
			if err := report.Err(); err != nil {
				t.Error(err)
			}
			var text strings.Builder
			if err := report.Write(&text, nil); err != nil {
				t.Fatal(err)
			}
			left := strings.Fields(c.want)[0] + " calls not\n"
			for _, want := range []string{"Porcupine did not judge " + c.want, "Porcupine judged 1 calls on 1 identities, tags and ids; " + left} {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the report does not say %q:\n%s", want, text.String())
				}
			}
		})
	}
}
