package check_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
	"github.com/idnode/idnode/test/tier"
)

var (
	histories = flag.Int("histories", 100_000, "how many random histories are compared with Porcupine")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first of them")
)

// model lets Porcupine search all orders of the calls on one name.
var model = porcupine.Model{
	Init: func() any { return newSpec() },
	Step: func(state, input, _ any) (bool, any) { return legal(state.(spec), input.(*history.Op)) },
}

func legal(s spec, op *history.Op) (bool, any) { ok, after := s.allows(op); return ok, after }

// linearizable says whether some order of the calls agrees with their times and
// answers. Every try is a call of its own here.
func linearizable(ops []history.Op) bool {
	var all []porcupine.Operation
	for i := range ops {
		op := &ops[i]
		ret := op.Return
		switch op.Outcome {
		case history.Failed:
			continue
		case history.Unknown:
			ret = math.MaxInt64 // it may happen after everything else: as good as never
		}
		all = append(all, porcupine.Operation{Input: op, Call: op.Call, Return: ret})
	}
	return porcupine.CheckOperations(model, all)
}

// TestSameVerdictAsPorcupine compares the checker of identities with a search
// through all orders, on random small histories, legal ones and wrong ones.
func TestSameVerdictAsPorcupine(t *testing.T) {
	tier.Long(t)
	n := *histories
	if testing.Short() {
		n /= 10
	}
	right, wrong := 0, 0
	for i := range n {
		seed := *firstSeed + uint64(i)
		r := rand.New(rand.NewPCG(seed, 0))
		mix := randomTraffic(r)
		ops := randomHistory(r, mix)
		for range i % 3 { // two of three are changed, once or twice
			if len(ops) > 1 {
				ops = mutate(r, mix, ops)
			}
		}
		want := linearizable(ops)
		if i%3 == 0 && !want {
			t.Fatalf("seed %d: the generator or the model is wrong:\n%s", seed, show(ops))
		}
		report := check.Ops(ops, check.Options{})
		if got := len(report.Violations) == 0; got != want || len(report.Undecided) > 0 {
			t.Fatalf("seed %d: Porcupine says %t, the checker %v %v of\n%s", seed, want, report.Violations, report.Undecided, show(ops))
		}
		if found := searched(t, ops); (len(found) == 0) != want {
			t.Fatalf("seed %d: Porcupine says %t with the plain model, and %v with that of process tests:\n%s", seed, want, found, show(ops))
		}
		if want {
			right++
		} else {
			wrong++
		}
	}
	t.Logf("%d histories are right, %d are wrong", right, wrong)
	if wrong < n/10 || right < n/3 {
		t.Error("one kind is too rare to say anything")
	}
}

// TestNoFalseAlarm has what is decided in one direction only: claims that are
// released, and claims on names that are set back. Nothing right is reported.
func TestNoFalseAlarm(t *testing.T) {
	n := *histories / 5
	if testing.Short() {
		n /= 10
	}
	found := 0
	for i := range n {
		seed := *firstSeed + uint64(i)
		r := rand.New(rand.NewPCG(seed, 1))
		mix := randomTraffic(r)
		mix.claims, mix.releases, mix.resets = true, r.IntN(3) > 0, r.IntN(2) == 0
		ops := randomHistory(r, mix)
		for range i % 3 {
			if len(ops) > 1 {
				ops = mutate(r, mix, ops)
			}
		}
		report := check.Ops(ops, check.Options{})
		if report.OK() && (mix.resets || len(searched(t, ops)) == 0) {
			continue
		}
		found++
		if linearizable(ops) {
			t.Fatalf("seed %d: a false alarm, %v %v of\n%s", seed, report.Violations, report.Undecided, show(ops))
		}
	}
	t.Logf("%d of %d histories were found wrong", found, n)
	if found < n/20 {
		t.Error("too few to say anything")
	}
}

// searched is the verdict of Porcupine that process tests get.
func searched(t *testing.T, ops []history.Op) (violations []check.Violation) {
	report := check.Ops(ops, check.Options{Search: time.Minute})
	if len(report.Searched.NotJudged) > 0 {
		t.Fatalf("not judged: %v of\n%s", report.Searched.NotJudged, show(ops))
	}
	for _, v := range report.Violations {
		if strings.HasPrefix(v.Rule, "porcupine/") {
			violations = append(violations, v)
		}
	}
	return violations
}

func show(ops []history.Op) string {
	var b strings.Builder
	for i := range ops {
		b.Write(append(ops[i].AppendJSON(nil), '\n'))
	}
	return b.String()
}
