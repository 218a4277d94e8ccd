package harness

import (
	"fmt"
	"time"

	"github.com/idnode/idnode/test/history"
)

// identityNames are the identities of the traffic: two are only counted, one is
// seeded too, one hidden, of one ids are claimed by hand, and of one released too.
var identityNames = []string{"orders", "invoices", "seeded", "hidden", "claimed", "freed"}

// databases are those of the traffic; the empty one is the default.
var databases = []string{"", "second"}

// step makes one call of some kind, with what follows from it.
func (w *worker) step() history.Outcome {
	switch n := w.random.IntN(100); {
	case n < 48:
		return w.next()
	case n < 56:
		return w.nextRange()
	case n < 58:
		return w.setRange()
	case n < 75:
		return w.etags()
	case n < 81:
		return w.claim()
	case n < 83:
		return w.free()
	case n < 85:
		return w.claimName()
	case n < 87:
		return w.issue(history.Op{Kind: history.Seed, Name: "seeded", Value: 1 + w.random.Int64N(5000), Request: w.request()}, nil).Outcome
	case n < 89:
		return w.seedExpected()
	case n < 90:
		return settled(w.issue(history.Op{Kind: history.Delete, Name: "hidden", Request: w.request()}, nil))
	default:
		return settled(w.issue(history.Op{Kind: history.Get, Name: w.name()}, nil))
	}
}

func (w *worker) name() string { return identityNames[w.random.IntN(len(identityNames))] }

func (w *worker) draw(values ...int64) int64 { return values[w.random.IntN(len(values))] }

// etags takes server-side ids.
func (w *worker) etags() history.Outcome {
	return w.issue(history.Op{Kind: history.Etag, Count: w.draw(1, 1, 1, 5)}, nil).Outcome
}

// request is a request id that no other call of any run has.
func (w *worker) request() string {
	return fmt.Sprintf("%x-%d-%d", w.Traffic.run.Seed, w.number, w.Traffic.run.requests.Add(1))
}

// next takes values. Half of the calls for one have no request id; blocks have
// one always, so that few outcomes stay unknown.
func (w *worker) next() history.Outcome {
	op := history.Op{
		Kind: history.Next, Name: w.name(), Count: w.draw(1, 1, 1, 1, 1, 1, 2, 20),
	}
	if op.Count > 1 || w.random.IntN(2) == 0 {
		op.Request = w.request()
	}
	got := w.issue(op, nil)
	if got.Outcome == history.OK && got.Name == "claimed" {
		w.highest(got.Database).Store(got.Blocks[len(got.Blocks)-1].Last)
	}
	return got.Outcome
}

// claim claims an id that an identity may be about to give.
func (w *worker) claim() history.Outcome {
	value := w.highest(w.database).Load() + 1 + w.random.Int64N(100)
	op := history.Op{Kind: history.Claim, Name: "claimed", Value: value, ID: fmt.Sprintf("claimed/%d", value)}
	if w.random.IntN(2) == 0 {
		op.Request = w.request()
	}
	return settled(w.issue(op, nil))
}

// free claims an id of an identity, and gives it free again.
func (w *worker) free() history.Outcome {
	value := 1 + w.random.Int64N(20_000)
	op := history.Op{Kind: history.Claim, Name: "freed", Value: value, ID: fmt.Sprintf("freed/%d", value), Request: w.request()}
	got := w.issue(op, nil)
	if got.Outcome == history.OK {
		op.Kind, op.Request = history.Release, w.request()
		got = w.issue(op, nil)
	}
	return settled(got)
}

// seedExpected seeds an identity if no caller has moved it since it was read.
func (w *worker) seedExpected() history.Outcome {
	read := w.issue(history.Op{Kind: history.Get, Name: "seeded"}, nil)
	if read.Outcome != history.OK {
		return settled(read)
	}
	op := history.Op{
		Kind: history.Seed, Name: "seeded", Expected: &read.Result,
		Value: read.Result + 1 + w.random.Int64N(20), Request: w.request(),
	}
	return settled(w.issue(op, nil))
}

// setRange reserves numbers of a tag itself, as a client does that runs the whole
// algorithm on its own side: above the range that it has just been given.
func (w *worker) setRange() history.Outcome {
	var token string
	held := w.issue(history.Op{Kind: history.Range, Name: "counted", Count: w.draw(1, 10), Request: w.request()}, &token)
	if held.Outcome != history.OK {
		return held.Outcome
	}
	op := history.Op{
		Kind: history.Set, Name: "counted", Expected: &held.High,
		Value: held.High + 1 + w.random.Int64N(50), Request: w.request(),
	}
	return settled(w.issue(op, nil))
}

// rewinds makes a caller that sets an identity of its own back: by force, and by
// having it forgotten. Nobody else may use it, because beside other calls nobody can
// tell what such a call found. One that left something unknown is given up.
func rewinds() func(*worker) history.Outcome {
	given := 0
	return func(w *worker) history.Outcome {
		op := history.Op{Kind: history.Next, Name: fmt.Sprintf("rewound-%d-%d", w.number, given), Request: w.request()}
		switch n := w.random.IntN(20); {
		case n < 2:
			op.Kind, op.Force, op.Value = history.Seed, true, w.random.Int64N(100)
		case n < 3:
			op.Kind, op.Forget = history.Delete, true
		case n < 4:
			op.Kind = history.Delete
		case n < 7:
			op.Kind, op.Request = history.Get, ""
		default:
			op.Count = w.draw(1, 1, 5)
		}
		got := w.issue(op, nil)
		if got.Outcome == history.Unknown || passing(got.Code) {
			given++
		}
		return settled(got)
	}
}

// claimName claims an id of no identity, and releases it.
func (w *worker) claimName() history.Outcome {
	id := fmt.Sprintf("users/name%d", w.random.IntN(500))
	got := w.issue(history.Op{Kind: history.Claim, ID: id, Request: w.request()}, nil)
	if got.Outcome == history.OK && w.random.IntN(2) == 0 {
		got = w.issue(history.Op{Kind: history.Release, ID: id, Request: w.request()}, nil)
	}
	return settled(got)
}

// settled counts it as an answer like any other that what was asked for is taken, not
// there, or not as expected.
func settled(op history.Op) history.Outcome {
	switch op.Code {
	case "ID_CLAIMED", "NOT_FOUND", "CONCURRENCY", "NUMBER_NOT_FOUND", "NUMBER_STATE":
		return history.OK
	}
	return op.Outcome
}

// nextRange reserves a range, uses some of it, and mostly gives the rest back.
func (w *worker) nextRange() history.Outcome {
	op := history.Op{Kind: history.Range, Name: "customers", Count: w.draw(0, 1, 10)}
	if w.random.IntN(2) == 0 {
		op.Request = w.request()
	}
	var token string
	held := w.issue(op, &token)
	if held.Outcome != history.OK {
		return held.Outcome
	}
	used := w.random.Int64N(held.High - held.Low + 2)
	if used > 0 {
		w.use(held, used)
	}
	if w.random.IntN(4) == 0 {
		return history.OK // its holder ends without a word
	}
	if w.random.IntN(4) == 0 {
		Pause(w.ctx, time.Duration(w.random.IntN(50))*time.Millisecond)
	}
	back := history.Op{Kind: history.Return, Name: held.Name, Low: held.Low, High: held.High, Last: held.Low + used - 1}
	if w.random.IntN(2) == 0 {
		back.Request = w.request()
	}
	return w.issue(back, &token).Outcome
}
