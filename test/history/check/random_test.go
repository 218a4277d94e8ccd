package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/idnode/idnode/test/history"
)

// traffic says which calls a random history has.
type traffic struct {
	blocks, seeds, reads, claims, releases, retries, resets bool
	unknown, failed                                         float64
}

// randomTraffic draws which calls are made at all, so that each mixture, also of
// few kinds, comes often.
func randomTraffic(r *rand.Rand) traffic {
	some := func() bool { return r.IntN(2) == 0 }
	t := traffic{blocks: some(), seeds: some(), reads: some(), retries: some(), failed: 0.05}
	t.unknown = []float64{0, 0.1, 0.3}[r.IntN(3)]
	if some() {
		t.claims = some()
	} else {
		t.resets = some()
	}
	return t
}

// try is a call with the moment at which the cluster gets to it.
type try struct {
	history.Op
	moment int64
}

// randomHistory is what the callers of a correct counter see.
func randomHistory(r *rand.Rand, t traffic) []history.Op {
	var tries []*try
	now := int64(0)
	for range 1 + r.IntN(3) {
		tries = append(tries, randomPhase(r, t, now)...)
		now += 2 * phase
		if !t.resets {
			continue
		}
		reset := &try{Op: history.Op{
			Kind: history.Seed, Force: true, Value: r.Int64N(4), Call: now, Return: now + 2,
			Outcome: history.OK,
		}, moment: now + 1}
		if r.IntN(2) == 0 {
			reset.Op = history.Op{Kind: history.Delete, Forget: true, Call: now, Return: now + 2, Outcome: history.OK}
		}
		reset.Name = "x"
		tries = append(tries, reset)
		now += 4
	}
	slices.SortStableFunc(tries, func(a, b *try) int { return int(a.moment - b.moment) })
	state := newSpec()
	for _, c := range tries {
		state = state.serve(&c.Op)
	}
	var ops []history.Op
	for _, c := range tries {
		ops = append(ops, c.Op)
	}
	slices.SortStableFunc(ops, func(a, b history.Op) int { return int(a.Call - b.Call) })
	return ops
}

// phase is how long a phase's calls run; then nobody calls.
const phase = 24

// randomPhase draws calls that run side by side.
func randomPhase(r *rand.Rand, t traffic, from int64) []*try {
	var tries []*try
	for range 1 + r.IntN(6) {
		op := randomCall(r, t)
		op.Name = "x"
		again := 1
		if t.retries && r.IntN(3) == 0 {
			op.Request = fmt.Sprintf("r%d-%d", from, len(tries))
			again += r.IntN(3)
		}
		for range again {
			tries = append(tries, randomTry(r, t, op, from))
		}
	}
	return tries
}

func randomTry(r *rand.Rand, t traffic, op history.Op, from int64) *try {
	c := &try{Op: op}
	c.Call = from + r.Int64N(phase)
	c.Return = c.Call + r.Int64N(phase-(c.Call-from))
	c.moment = c.Call + r.Int64N(c.Return-c.Call+1)
	c.Outcome = history.OK
	switch draw := r.Float64(); {
	case draw < t.failed:
		c.Outcome, c.Code = history.Failed, "NO_QUORUM"
	case draw < t.failed+t.unknown:
		c.Outcome = history.Unknown
		c.moment = c.Call + r.Int64N(4*phase)
	}
	return c
}

func randomCall(r *rand.Rand, t traffic) history.Op {
	switch {
	case t.seeds && r.IntN(5) == 0:
		op := history.Op{Kind: history.Seed, Value: r.Int64N(12)}
		if r.IntN(2) == 0 {
			expected := r.Int64N(6)
			op.Expected = &expected
		}
		return op
	case t.reads && r.IntN(4) == 0:
		return history.Op{Kind: []history.Kind{history.Get, history.Delete}[r.IntN(2)]}
	case t.claims && r.IntN(3) == 0:
		op := history.Op{Kind: history.Claim, Value: 1 + r.Int64N(12)}
		if t.releases && r.IntN(2) == 0 {
			op.Kind = history.Release
		}
		return op
	}
	op := history.Op{Kind: history.Next}
	if t.blocks {
		op.Count = []int64{0, 1, 2, 3, 5}[r.IntN(5)]
	}
	return op
}

// mutate changes a history as an error would.
func mutate(r *rand.Rand, t traffic, ops []history.Op) []history.Op {
	ops = slices.Clone(ops)
	i, k := r.IntN(len(ops)), r.IntN(len(ops))
	op := &ops[i]
	switch r.IntN(7) {
	case 0:
		shift(op, r.Int64N(5)-2)
	case 1: // answers are exchanged
		if op.Kind == ops[k].Kind && op.Count == ops[k].Count && op.Kind == history.Next && op.Outcome == ops[k].Outcome {
			op.Blocks, ops[k].Blocks = ops[k].Blocks, op.Blocks
		}
	case 2: // it happened at another time
		if !t.resets {
			op.Call += r.Int64N(21) - 10
			op.Return = max(op.Return+r.Int64N(21)-10, op.Call)
		}
	case 3: // what was not known has failed
		if op.Outcome == history.Unknown {
			op.Outcome, op.Code = history.Failed, "NO_QUORUM"
		}
	case 4: // what was known is not
		if op.Outcome == history.OK && !op.Force && !op.Forget {
			op.Outcome, op.Blocks, op.Result = history.Unknown, nil, 0
		}
	case 5: // a call is lost
		ops = slices.Delete(ops, i, i+1)
	case 6: // it is answered twice
		if !op.Force && !op.Forget {
			twin := *op
			twin.Request = ""
			ops = append(ops, twin)
		}
	}
	return ops
}

// shift changes the numbers of an answer.
func shift(op *history.Op, by int64) {
	if op.Outcome != history.OK {
		return
	}
	op.Blocks = slices.Clone(op.Blocks)
	for i := range op.Blocks {
		op.Blocks[i].First += by
		op.Blocks[i].Last += by
	}
	switch op.Kind {
	case history.Get, history.Delete, history.Seed:
		op.Result += by
	}
}
