package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
	"github.com/idnode/idnode/test/tier"
)

// Each case is a history as somebody's error would make it, or one that only
// looks like it: then rule is empty. Calls are written down in the order in
// which they return.

type verdict struct {
	name string
	// rule is the rule that the history breaks, "" for none.
	rule string
	ops  []history.Op
}

func (v verdict) run(t *testing.T, o check.Options) {
	t.Run(v.name, func(t *testing.T) {
		report := check.Ops(v.ops, o)
		for _, u := range report.Undecided {
			t.Errorf("undecided: %s", u)
		}
		broken := func(f check.Violation) bool { return f.Rule == v.rule }
		switch {
		case v.rule == "" && !report.OK():
			t.Errorf("a history that is right: %v", report.Violations)
		case v.rule != "" && !slices.ContainsFunc(report.Violations, broken):
			t.Errorf("found %v, want %s", report.Violations, v.rule)
		}
	})
}

// option changes an Op of a case.
type option func(*history.Op)

func op(kind history.Kind, call, ret int64, options ...option) history.Op {
	o := history.Op{Kind: kind, Name: "orders", Call: call, Return: ret, Outcome: history.OK}
	for _, change := range options {
		change(&o)
	}
	return o
}

func index(i uint64) option { return func(o *history.Op) { o.Index = i } }

// recovered is a recovery that leaves the log at an index.
func recovered(at uint64, call int64) history.Op { return op(history.Recovered, call, call, index(at)) }

func unknown(o *history.Op)   { o.Outcome, o.Return = history.Unknown, history.Never }
func failed(o *history.Op)    { o.Outcome, o.Code = history.Failed, "NO_QUORUM" }
func force(o *history.Op)     { o.Force = true }
func forget(o *history.Op)    { o.Forget = true }
func stale(o *history.Op)     { o.Stale = true }
func reserve(o *history.Op)   { o.Reserve = true }
func code(c string) option    { return func(o *history.Op) { o.Code = c } }
func node(n string) option    { return func(o *history.Op) { o.Node = n } }
func tag(n string) option     { return func(o *history.Op) { o.Tag = n } }
func id(n string) option      { return func(o *history.Op) { o.ID = n } }
func name(n string) option    { return func(o *history.Op) { o.Name = n } }
func db(n string) option      { return func(o *history.Op) { o.Database = n } }
func request(n string) option { return func(o *history.Op) { o.Request = n } }
func value(n int64) option    { return func(o *history.Op) { o.Value = n } }
func result(n int64) option   { return func(o *history.Op) { o.Result = n } }
func counts(n int64) option   { return func(o *history.Op) { o.Count = n } }
func expected(n int64) option { return func(o *history.Op) { o.Expected = &n } }
func at(i, h uint64) option   { return func(o *history.Op) { o.Index, o.Hash = i, h } }

func bounds(low, high int64) option {
	return func(o *history.Op) { o.Low, o.High = low, high }
}

// returned is an accepted return down to last.
func returned(last int64) option {
	return func(o *history.Op) { o.Last, o.Result, o.Returned = last, last, true }
}

// got is blocks given as first, last, first, last …; count follows from them.
func got(ends ...int64) option {
	return func(o *history.Op) {
		for i := 0; i < len(ends); i += 2 {
			o.Blocks = append(o.Blocks, history.Block{First: ends[i], Last: ends[i+1]})
		}
		o.Count = history.Size(o.Blocks)
	}
}

func next(v, call, ret int64, options ...option) history.Op {
	return op(history.Next, call, ret, append([]option{got(v, v)}, options...)...)
}

type verdicts []verdict

func (all verdicts) run(t *testing.T) {
	t.Helper()
	for _, v := range all {
		v.run(t, check.Options{})
	}
}

func TestIdentityValues(t *testing.T) {
	verdicts{
		{"both sides of a partition continue from the same value", "identities/twice", []history.Op{
			next(1, 0, 1, node("A")), next(2, 2, 3, node("A")), next(2, 2, 9, node("B")),
		}},
		{"one block is handed out on two sides", "identities/twice", []history.Op{
			op(history.Next, 0, 1, got(1, 10000)), op(history.Next, 0, 1, got(5001, 15000)),
		}},
		{"a deposed leader stores its stale value on shutdown", "identities/twice", []history.Op{
			next(1, 0, 1), next(2, 2, 3), next(3, 4, 5), next(2, 6, 7),
		}},
		{"a leader comes back and goes on from its old cache", "identities/order", []history.Op{
			op(history.Next, 0, 1, got(1, 1)), next(4, 2, 3), op(history.Next, 4, 5, got(2, 3)),
		}},
		{"a stale leader answers after the new one", "identities/order", []history.Op{
			next(2, 0, 5), next(1, 6, 7),
		}},
		{"two callers at the same time in either order", "", []history.Op{next(2, 0, 5), next(1, 4, 7)}},
		{"the same moment is at the same time", "", []history.Op{next(2, 0, 5), next(1, 5, 7)}},
		{"an answer is given before it is on disk, and lost", "identities/twice", []history.Op{
			next(1, 0, 1), next(1, 10, 11),
		}},
		{"a counter is made again from what exists", "identities/twice", []history.Op{
			next(1, 0, 1), next(2, 2, 3), next(3, 4, 5), next(3, 6, 7),
		}},
		{"a requester gets another's block", "identities/twice", []history.Op{
			op(history.Next, 0, 1, got(1, 5)), op(history.Next, 2, 3, got(1, 5)),
		}},
		{"fewer values than asked for", "identities/count", []history.Op{op(history.Next, 0, 1, got(1, 5), counts(6))}},
		{"names and databases are independent", "", []history.Op{
			next(1, 0, 1), next(1, 2, 3, name("users")), next(1, 4, 5, db("other")), next(2, 6, 7),
		}},
		{"a joined key: a/b and c, a and b/c", "", []history.Op{next(1, 0, 1, db("a/b"), name("c")), next(1, 2, 3, db("a"), name("b/c"))}},
	}.run(t)
}

func TestIdentityHoles(t *testing.T) {
	verdicts{
		{"a cached block is dropped without a crash", "identities/hole", []history.Op{next(1, 0, 1), next(101, 2, 3)}},
		{"a call whose answer was lost leaves a hole", "", []history.Op{
			next(1, 0, 1), op(history.Next, 2, 3, unknown), next(3, 4, 5),
		}},
		{"a call that was made later leaves no hole before", "identities/hole", []history.Op{
			next(1, 0, 1), next(3, 4, 5), op(history.Next, 6, 7, unknown),
		}},
		{"a call that certainly failed took a value", "identities/hole", []history.Op{
			next(1, 0, 1), op(history.Next, 2, 3, failed), next(3, 4, 5),
		}},
		{"one lost call takes two values", "identities/hole", []history.Op{
			next(1, 0, 1), op(history.Next, 2, 3, unknown), next(4, 4, 5),
		}},
		{"a lost block is taken in part", "identities/hole", []history.Op{
			op(history.Next, 0, 1, unknown, counts(10)), next(6, 2, 3),
		}},
		{"lost blocks of many sizes fill the holes in one way only", "", []history.Op{
			op(history.Next, 0, 1, unknown, counts(2)), op(history.Next, 0, 1, unknown, counts(3)), op(history.Next, 0, 1, unknown, counts(3)),
			op(history.Next, 0, 1, unknown, counts(1)), next(4, 2, 3), next(11, 4, 5),
		}},
		{"lost blocks of many sizes do not fill the holes", "identities/hole", []history.Op{
			op(history.Next, 0, 1, unknown, counts(2)), op(history.Next, 0, 1, unknown, counts(3)), op(history.Next, 0, 1, unknown, counts(3)),
			next(4, 2, 3), next(9, 4, 5),
		}},
		{"a lost call comes to effect much later", "", []history.Op{
			op(history.Next, 0, 1, unknown), next(1, 2, 3), next(2, 4, 5), next(4, 6, 7),
		}},
	}.run(t)
}

func TestIdentityRetries(t *testing.T) {
	verdicts{
		{"a retry is counted twice", "identities/hole", []history.Op{
			op(history.Next, 0, 1, unknown, request("r")), next(2, 2, 3, request("r")), next(3, 4, 5),
		}},
		{"a retry remembered by a recovery", "", []history.Op{
			next(1, 0, 0, request("r"), unknown), recovered(9, 2), next(1, 3, 4, request("r"), index(7)),
		}},
		{"a retry counts after a recovery", "requests/recovered", []history.Op{
			next(1, 0, 0, request("r"), unknown), recovered(9, 2), next(1, 3, 4, request("r"), index(10)),
		}},
		{"a first try after a recovery", "", []history.Op{
			recovered(9, 2), next(1, 3, 4, request("r"), index(10)),
		}},
		{"a retry whose first try surely failed", "", []history.Op{
			next(1, 0, 1, request("r"), failed), recovered(9, 2), next(1, 3, 4, request("r"), index(10)),
		}},
		{"a retry is answered again", "requests/answers", []history.Op{next(1, 0, 1, request("r")), next(2, 2, 3, request("r"))}},
		{"a retry is answered with what it got", "", []history.Op{
			op(history.Next, 0, 1, unknown, request("r")), next(2, 3, 4), next(1, 5, 6, request("r")), next(1, 7, 8, request("r")), next(3, 9, 10),
		}},
		{"the first answer ends the call, not the last", "identities/order", []history.Op{
			next(3, 0, 1), next(1, 0, 2, request("r")), next(2, 3, 4), next(1, 5, 6, request("r")),
		}},
		{"one request id for two questions", "requests/reused", []history.Op{
			next(1, 0, 1, request("r")), op(history.Next, 2, 3, got(2, 6), request("r")),
		}},
		{"one request id in two databases", "", []history.Op{next(1, 0, 1, request("r")), next(1, 2, 3, request("r"), db("other"))}},
	}.run(t)
}

func TestIdentityDeletions(t *testing.T) {
	verdicts{
		{"a dropped name goes on in its cache", "identities/hole", []history.Op{
			next(1, 0, 1), op(history.Delete, 2, 3, forget, result(1)), next(2, 4, 5),
		}},
		{"a forgotten name begins again", "", []history.Op{
			next(1, 0, 1), op(history.Delete, 2, 3, forget, result(1)), next(1, 4, 5),
		}},
		{"a hidden name goes on", "", []history.Op{next(1, 0, 1), op(history.Delete, 2, 3, result(1)), next(2, 4, 5)}},
		{"a hidden name begins again", "identities/twice", []history.Op{next(1, 0, 1), op(history.Delete, 2, 3, result(1)), next(1, 4, 5)}},
		{"a forgotten name had another value", "identities/back", []history.Op{
			next(1, 0, 1), next(2, 2, 3), op(history.Delete, 4, 5, forget, result(1)), next(1, 6, 7),
		}},
	}.run(t)
}

func TestSeedsAndReads(t *testing.T) {
	seed := func(v, after, call, ret int64, options ...option) history.Op {
		return op(history.Seed, call, ret, append([]option{value(v), result(after)}, options...)...)
	}
	verdicts{
		{"explicit values collide with a cached block", "identities/twice", []history.Op{
			next(1, 0, 1), seed(100, 100, 2, 3), op(history.Next, 4, 5, got(101, 110)), next(105, 6, 7),
		}},
		{"a cache outlives a seed", "identities/order", []history.Op{next(1, 0, 1), seed(100, 100, 2, 3), next(2, 4, 5)}},
		{"a seed and a next at the same time", "", []history.Op{next(1, 0, 1), seed(100, 100, 2, 6), next(2, 3, 7), next(101, 8, 9)}},
		{"a seed only raises", "", []history.Op{next(1, 0, 1), next(2, 2, 3), seed(1, 2, 4, 5), next(3, 6, 7)}},
		{"a seed lowers", "identities/seed", []history.Op{next(1, 0, 1), next(2, 2, 3), seed(2, 1, 4, 5)}},
		{"a seed by force lowers", "", []history.Op{next(1, 0, 1), next(2, 2, 3), seed(1, 1, 4, 5, force), next(2, 6, 7)}},
		{"a seed by force is lost in a snapshot", "identities/hole", []history.Op{
			next(1, 0, 1), next(2, 2, 3), seed(0, 0, 4, 5, force), next(3, 6, 7),
		}},
		{"two seeds from the same expected value", "identities/back", []history.Op{
			seed(5, 5, 0, 9, expected(0)), seed(5, 5, 0, 9, expected(0)),
		}},
		{"an expected value that was not there", "identities/hole", []history.Op{next(1, 0, 1), seed(5, 5, 2, 3, expected(2))}},
		{"a lost seed explains a jump", "", []history.Op{
			next(1, 0, 1), op(history.Seed, 2, 3, value(50), unknown), next(51, 4, 5),
		}},
		{"a lost seed jumps no further", "identities/hole", []history.Op{
			next(1, 0, 1), op(history.Seed, 2, 3, value(50), unknown), next(52, 4, 5),
		}},
		{"a read that is too old", "identities/order", []history.Op{next(1, 0, 1), next(2, 2, 3), op(history.Get, 4, 5, result(1))}},
		{"a stale read that is too old", "", []history.Op{next(1, 0, 1), next(2, 2, 3), op(history.Get, 4, 5, result(1), stale)}},
		{"a read sees what nobody took", "identities/hole", []history.Op{next(1, 0, 1), op(history.Get, 2, 3, result(2)), next(3, 4, 5)}},
		{"a read sees a value before it was asked for", "identities/order", []history.Op{op(history.Get, 0, 1, result(1)), next(1, 2, 3)}},
		{"a read within a block", "identities/back", []history.Op{op(history.Next, 0, 9, got(1, 5)), op(history.Get, 0, 9, result(3))}},
	}.run(t)
}

func TestClaims(t *testing.T) {
	verdicts{
		{"a claimed value is stepped over", "", []history.Op{
			next(1, 0, 1), op(history.Claim, 2, 3, value(2)), next(3, 4, 5),
		}},
		{"a claimed value is handed out", "identities/claimed", []history.Op{
			next(1, 0, 1), op(history.Claim, 2, 3, value(2)), next(2, 4, 5),
		}},
		{"an issued value is claimed", "identities/claimed", []history.Op{next(1, 0, 1), op(history.Claim, 2, 3, value(1))}},
		{"a value that was stepped over is released and claimed again", "", []history.Op{
			next(1, 0, 1), op(history.Claim, 2, 3, value(2)), next(3, 4, 5), op(history.Release, 6, 7, value(2)), op(history.Claim, 8, 9, value(2)),
		}},
		{"an issued value is claimed, with a claim and a release behind the counter", "identities/claimed", []history.Op{
			next(1, 0, 1), next(2, 2, 3), op(history.Claim, 4, 5, value(1)), op(history.Release, 6, 7, value(1)),
		}},
		{"a block in pieces", "", []history.Op{op(history.Claim, 0, 1, value(3)), op(history.Next, 2, 3, got(1, 2, 4, 5)), next(6, 4, 5)}},
		{"a block in pieces around nothing", "identities/hole", []history.Op{op(history.Next, 2, 3, got(1, 2, 4, 5))}},
		{"a block in pieces around a later claim", "identities/hole", []history.Op{
			op(history.Next, 2, 3, got(1, 2, 4, 5)), op(history.Claim, 4, 5, value(3), unknown),
		}},
		{"a value between the pieces comes later", "identities/twice", []history.Op{
			op(history.Claim, 0, 1, value(3)), op(history.Next, 2, 3, got(1, 2, 4, 5)), next(3, 4, 5),
		}},
		{"a released value is handed out", "", []history.Op{
			op(history.Claim, 0, 1, value(1)), op(history.Release, 2, 3, value(1)), next(1, 4, 5),
		}},
		{"a lost call comes to a claimed value", "identities/hole", []history.Op{
			next(1, 0, 1), op(history.Claim, 2, 3, value(2)), op(history.Next, 4, 5, unknown), op(history.Get, 6, 7, result(2)),
		}},
		{"a value is claimed twice", "identities/claimed", []history.Op{op(history.Claim, 0, 1, value(1)), op(history.Claim, 2, 3, value(1))}},
		{"an id that is no number", "", []history.Op{
			op(history.Claim, 0, 1, name(""), id("users/ayende")), next(1, 2, 3, name("users")),
		}},
	}.run(t)
}

func TestEtags(t *testing.T) {
	etag := func(first, last, call, ret int64, n string) history.Op {
		return op(history.Etag, call, ret, got(first, last), node(n), tag(n))
	}
	verdicts{
		{"a clock set back resets the sequence", "etags/order", []history.Op{etag(50, 50, 0, 1, "A"), etag(7, 7, 2, 3, "A")}},
		{
			"a disk set back to an older copy", "etags/twice",
			[]history.Op{etag(1, 10, 0, 1, "A"), etag(11, 20, 2, 3, "A"), etag(11, 20, 4, 5, "A")},
		},
		{"two nodes with one tag", "etags/twice", []history.Op{etag(1, 1, 0, 1, "A"), etag(1, 1, 0, 1, "A")}},
		{"two nodes with two tags", "", []history.Op{etag(1, 1, 0, 1, "A"), etag(1, 1, 0, 1, "B")}},
		{"a node with another's tag", "etags/tag", []history.Op{op(history.Etag, 0, 1, got(1, 1), node("A"), tag("B"))}},
		{"holes after a crash", "", []history.Op{etag(1, 10, 0, 1, "A"), etag(1<<20, 1<<20+5, 2, 3, "A")}},
		{"side by side in either order", "", []history.Op{etag(5, 9, 0, 4, "A"), etag(1, 4, 3, 5, "A")}},
		{"pieces side by side", "", []history.Op{
			op(history.Etag, 0, 9, got(1, 4, 9, 12), node("A"), tag("A")), op(history.Etag, 0, 9, got(5, 8), node("A"), tag("A")),
		}},
	}.run(t)
}

func TestTagsAndHashes(t *testing.T) {
	member := func(n, who string) history.Op { return op(history.Member, 0, 1, tag(n), id(who)) }
	hash := func(n string, index, h uint64, options ...option) history.Op {
		return op(history.Hash, 0, 1, append([]option{node(n), at(index, h)}, options...)...)
	}
	verdicts{
		{
			"a tag is given again after its node was removed", "tags/tag",
			[]history.Op{member("A", "one"), member("B", "two"), member("A", "three")},
		},
		{"a node comes back under another tag", "tags/id", []history.Op{member("A", "one"), member("B", "one")}},
		{"the same members seen again", "", []history.Op{member("A", "one"), member("B", "two"), member("A", "one")}},
		{"an entry is applied twice on one node", "hashes/differ", []history.Op{hash("A", 7, 1), hash("B", 7, 2)}},
		{"hashes at other indexes", "", []history.Op{hash("A", 7, 1), hash("B", 8, 2), hash("C", 7, 1)}},
		{"hashes of another cluster", "", []history.Op{hash("A", 7, 1), hash("A", 7, 2, id("restored"))}},
	}.run(t)
}

func TestQuorum(t *testing.T) {
	lost := func(n string, call, ret int64) history.Op { return op(history.Lost, call, ret, node(n)) }
	back := func(n string, call, ret int64) history.Op { return op(history.Back, call, ret, node(n)) }
	bounds := check.Options{Lease: 10, Longest: 100}
	for _, v := range []verdict{
		{"the minority hands out ids", "quorum/success", []history.Op{lost("A", 0, 1), next(1, 12, 13, node("A"))}},
		{"the majority hands out ids", "", []history.Op{lost("A", 0, 1), next(1, 12, 13, node("B"))}},
		{"nobody has a quorum", "quorum/success", []history.Op{lost("", 0, 1), next(1, 12, 13, node("B"))}},
		{"within the lease", "", []history.Op{lost("A", 0, 1), next(1, 11, 20, node("A"))}},
		{"answered after the quorum was back", "", []history.Op{
			lost("A", 0, 1), next(1, 12, 20, node("A")), back("A", 20, 21), next(2, 22, 23, node("A")),
		}},
		{"what needs no quorum goes on", "", []history.Op{
			lost("A", 0, 1), op(history.Etag, 12, 13, got(1, 1), node("A"), tag("A")), op(history.Get, 14, 15, stale, node("A")),
		}},
		{"a stale leader answers reads", "quorum/success", []history.Op{lost("A", 0, 1), op(history.Get, 14, 15, node("A"))}},
		{"the wrong code", "quorum/code", []history.Op{lost("A", 0, 1), op(history.Next, 12, 13, failed, code("NOT_FOUND"), node("A"))}},
		{"the right code", "", []history.Op{lost("A", 0, 1), op(history.Next, 12, 13, failed, node("A"))}},
		{"a call waits for a stalled disk", "quorum/late", []history.Op{next(1, 0, 101)}},
		{"a call is answered in time", "", []history.Op{next(1, 0, 100)}},
		{"a call never ends", "quorum/late", []history.Op{op(history.Next, 0, 0, unknown), next(1, 100, 101)}},
		{"a call is in flight at the end", "", []history.Op{op(history.Next, 50, 0, unknown), next(1, 100, 101)}},
		{"the machine stood still", "", []history.Op{next(1, 0, 130), op(history.Stall, 20, 60)}},
		{
			"the machine stood still, and not long enough", "quorum/late",
			[]history.Op{next(1, 0, 130), op(history.Stall, 20, 40), op(history.Stall, 125, 300)},
		},
	} {
		v.run(t, bounds)
	}
}

func TestMalformed(t *testing.T) {
	verdicts{
		{"a deadline is no certain failure", "malformed", []history.Op{op(history.Next, 0, 1, failed, code("DEADLINE_EXCEEDED"))}},
		{"a lost leader is no certain failure", "malformed", []history.Op{op(history.Next, 0, 1, failed, code("OUTCOME_UNKNOWN"))}},
		{"a broken connection is no certain failure", "malformed", []history.Op{op(history.Next, 0, 1, failed, code(""))}},
		{"back in time", "malformed", []history.Op{next(1, 2, 1)}},
		{"no values", "malformed", []history.Op{op(history.Next, 0, 1)}},
		{"values backwards", "malformed", []history.Op{op(history.Next, 0, 1, got(3, 3, 1, 1))}},
		{"no such kind", "malformed", []history.Op{op("nextt", 0, 1)}},
		{"no outcome", "malformed", []history.Op{{Kind: history.Next, Return: 1}}},
	}.run(t)
}

// What cannot be decided is no success.
func TestUndecided(t *testing.T) {
	tier.Long(t)
	var sizes []history.Op
	for i := range int64(40) {
		sizes = append(sizes, op(history.Next, 0, 1, unknown, counts(2*(1<<20)+i*i*2)))
	}
	for _, v := range []struct {
		name string
		ops  []history.Op
	}{
		{"a seed by force beside a next", []history.Op{next(1, 0, 9), op(history.Seed, 3, 4, force)}},
		{"a forget of unknown outcome", []history.Op{next(1, 0, 1), op(history.Delete, 2, 3, forget, unknown), next(1, 4, 5)}},
		{"holes and lost blocks of forty sizes", append(sizes, next(40*(1<<20)+2, 2, 3))},
	} {
		t.Run(v.name, func(t *testing.T) {
			begin := time.Now()
			report := check.Ops(v.ops, check.Options{})
			if len(report.Undecided) != 1 || len(report.Violations) != 0 || report.OK() || report.Err() == nil {
				t.Errorf("undecided %v, violations %v after %s", report.Undecided, report.Violations, time.Since(begin))
			}
		})
	}
	t.Run("a forget of unknown outcome that need not have happened", func(t *testing.T) {
		report := check.Ops([]history.Op{next(1, 0, 1), op(history.Delete, 2, 3, forget, unknown), next(2, 4, 5)}, check.Options{})
		if err := report.Err(); err != nil {
			t.Error(err)
		}
	})
}

// A report shows the calls that say so.
func TestReport(t *testing.T) {
	report := check.Ops([]history.Op{next(1, 0, 1), next(2, 2, 3), next(1, 4, 5)}, check.Options{})
	var b strings.Builder
	if err := report.Write(&b, func(op int) string { return "line " + string(rune('0'+op)) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 operations: 3 identity values (0 holes)",
		"VIOLATION identities/twice: default/orders: 1 to 1 and 1 to 1 were both handed out\n    1: line 1\n    3: line 3\n",
		"VIOLATION identities/order: default/orders: called at 4ns it came to 1, though a call that came further " +
			"had returned at 3ns\n    2: line 2\n",
		"2 violations, 0 undecided",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
