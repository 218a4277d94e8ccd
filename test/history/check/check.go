package check

import (
	"iter"
	"time"

	"github.com/idnode/idnode/test/history"
)

// Options are the bounds that a cluster promised.
type Options struct {
	// Lease is how long after a lost quorum a leader may not know of it, and
	// answer: calls made later must not succeed. The default is 0.
	Lease time.Duration
	// Longest bounds how long a call may take; 0 only measures.
	Longest time.Duration
	// Refusals are the codes with which a call may end that was made without a
	// quorum. Nil is NO_QUORUM, LEADER_UNREACHABLE, OUTCOME_UNKNOWN, STARTING and STOPPING.
	Refusals []string
	// Search lets Porcupine judge too whether the calls are linearizable, and is how long it
	// may search for each identity, tag and id. 0 is not at all.
	Search time.Duration
}

// Checker takes a history in, operation by operation, in any order, and judges
// it as a whole. It is not safe for concurrent use.
type Checker struct {
	findings
	ops        int
	requests   requests
	identities counters[identityCounter]
	hilos      counters[hiloCounter]
	etags      counters[etagCounter]
	series     counters[seriesCounter]
	workers    counters[workerPool]
	tags       tags
	hashes     hashes
	quorum     quorum
	linearizer *linearizer // nil: not asked for
}

// New makes a checker.
func New(o Options) *Checker {
	if o.Refusals == nil {
		o.Refusals = []string{"NO_QUORUM", "LEADER_UNREACHABLE", "OUTCOME_UNKNOWN", "STARTING", "STOPPING"}
	}
	c := &Checker{quorum: quorum{options: o}}
	if o.Search > 0 {
		c.linearizer = newLinearizer(o.Search)
	}
	return c
}

// Ops checks a history that is in memory.
func Ops(ops []history.Op, o Options) *Report {
	c := New(o)
	for i := range ops {
		c.Add(&ops[i])
	}
	return c.Report()
}

// Stream checks a history as it is read. The error is that of the reader.
func Stream(ops iter.Seq2[history.Op, error], o Options) (*Report, error) {
	c := New(o)
	for op, err := range ops {
		if err != nil {
			return nil, err
		}
		c.Add(&op)
	}
	return c.Report(), nil
}

// Add takes the next operation of the history in. The Op is the caller's again
// when Add returns, its blocks are not to be changed.
func (c *Checker) Add(op *history.Op) {
	c.ops++
	if why := malformed(op); why != "" {
		c.violation("malformed", string(op.Kind), []int{c.ops}, "%s", why)
		return
	}
	c.quorum.add(op, c.ops)
	if c.linearizer != nil {
		c.linearizer.add(op, c.ops, &c.findings)
	}
	if op.Request != "" {
		c.requests.add(op, c.ops, &c.findings)
		return
	}
	c.route(op, c.ops)
}

// route hands a call, all its tries in one, or an event to its checker.
func (c *Checker) route(op *history.Op, pos int) {
	if op.Outcome == history.Failed {
		return // it did nothing
	}
	key := counterKey{op.Database, op.Name}
	switch op.Kind {
	case history.Next, history.Seed, history.Get, history.Delete, history.Claim, history.Release:
		c.identities.of(key).add(op, pos)
	case history.Range, history.Return, history.Set, history.Merge, history.Use:
		c.hilos.of(key).add(op, pos)
	case history.Etag:
		c.etags.of(counterKey{op.Database, op.Tag}).add(op, pos, &c.findings)
	case history.Take, history.End, history.Find:
		c.series.of(key).add(op, pos)
	case history.Lease, history.Renew, history.Free, history.Evict, history.Make:
		c.workers.of(key).add(op, pos)
	case history.Recovered:
		c.requests.recoveries = append(c.requests.recoveries, request{*op, pos})
	case history.Member:
		c.tags.add(op, pos, &c.findings)
	case history.Hash:
		c.hashes.add(op, pos, &c.findings)
	}
}

// Report judges what was added. The checker cannot be used afterwards.
func (c *Checker) Report() *Report {
	c.requests.recovered(&c.findings)
	for _, r := range c.requests.list {
		c.route(&r.Op, r.pos)
	}
	c.requests = requests{}
	r := &Report{Ops: c.ops}
	for key, counter := range c.identities.all() {
		taken, holes := counter.check(key.String(), &c.findings)
		r.Identities += taken
		r.Holes += holes
	}
	for key, counter := range c.hilos.all() {
		r.HiLoUsed += counter.check(key.String(), &c.findings)
	}
	for key, counter := range c.etags.all() {
		r.Etags += counter.check(key.String(), &c.findings)
	}
	for key, counter := range c.series.all() {
		r.SeriesNumbers += counter.check(key.String(), &c.findings)
	}
	for key, pool := range c.workers.all() {
		r.Snowflakes += pool.check(key.String(), &c.findings)
	}
	r.Calls = c.quorum.check(&c.findings)
	if c.linearizer != nil {
		r.Searched = c.linearizer.check(&c.findings)
	}
	r.Violations, r.Undecided, r.More = c.violations, c.undecided, c.more
	return r
}

// malformed says what is wrong with a line, or "".
func malformed(op *history.Op) string {
	switch {
	case op.Return < op.Call:
		return "it returns before it is called"
	case op.Outcome == history.OK && op.Return == history.Never:
		return "it is ok but never returned"
	case op.Outcome == history.Failed && mayHaveHappened(op.Code):
		return "a call that ended with the code \"" + op.Code + "\" may have happened"
	case !known(op.Kind):
		return "there is no such kind"
	}
	switch op.Outcome {
	case history.Failed, history.Unknown:
		return ""
	case history.OK:
		return malformedAnswer(op)
	}
	return "the outcome is " + string(op.Outcome)
}

// mayHaveHappened says whether a call that ended with the code may have taken
// effect. Without a reason of the cluster's own nobody knows.
func mayHaveHappened(code string) bool {
	switch code {
	case "", "UNAVAILABLE", "OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED", "CANCELED", "INTERNAL", "UNKNOWN":
		return true
	}
	return false
}

func known(kind history.Kind) bool {
	switch kind {
	case history.Next, history.Seed, history.Get, history.Delete, history.Claim, history.Release,
		history.Range, history.Return, history.Set, history.Merge, history.Use, history.Etag,
		history.Take, history.End, history.Find, history.Lease, history.Renew, history.Free, history.Evict, history.Make, history.Other,
		history.Member, history.Hash, history.Lost, history.Back, history.Recovered, history.Stall:
		return true
	}
	return false
}

func malformedAnswer(op *history.Op) string {
	switch op.Kind {
	case history.Next, history.Etag, history.Use, history.Make:
		return malformedBlocks(op.Blocks)
	case history.Range, history.Lease:
		if op.Low > op.High {
			return "the range is empty"
		}
	}
	return ""
}

func malformedBlocks(blocks []history.Block) string {
	if len(blocks) == 0 {
		return "it is ok but has no blocks"
	}
	for i, b := range blocks {
		if b.First > b.Last || i > 0 && b.First <= blocks[i-1].Last {
			return "its blocks are not ascending"
		}
	}
	return ""
}
