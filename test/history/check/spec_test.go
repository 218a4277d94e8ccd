package check_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idnode/idnode/test/history"
)

// spec is an identity as the documentation describes it, in the simplest way. It
// is a value: serving a call gives a new one.
type spec struct {
	last int64
	// claimed are the claimed values, each in commas.
	claimed string
	// done are the request ids with their answers.
	done string
}

func newSpec() spec { return spec{claimed: ","} }

func (s spec) isClaimed(v int64) bool { return strings.Contains(s.claimed, fmt.Sprintf(",%d,", v)) }

// apply takes a call and returns the answer; ok is false if it is refused.
func (s spec) apply(op *history.Op) (after spec, blocks []history.Block, result int64, ok bool) {
	switch op.Kind {
	case history.Next:
		for range max(op.Count, 1) {
			s.last++
			for s.isClaimed(s.last) {
				s.last++
			}
			if n := len(blocks); n > 0 && blocks[n-1].Last == s.last-1 {
				blocks[n-1].Last = s.last
			} else {
				blocks = append(blocks, history.Block{First: s.last, Last: s.last})
			}
		}
	case history.Seed:
		if op.Expected != nil && *op.Expected != s.last {
			return s, nil, 0, false
		}
		s.last = max(s.last, op.Value)
		if op.Force {
			s.last = op.Value
		}
		result = s.last
	case history.Get:
		result = s.last
	case history.Delete:
		result = s.last
		if op.Forget {
			s.last = 0
		}
	case history.Claim:
		if op.Value <= s.last || s.isClaimed(op.Value) {
			return s, nil, 0, false
		}
		s.claimed += fmt.Sprintf("%d,", op.Value)
	case history.Release:
		if !s.isClaimed(op.Value) {
			return s, nil, 0, false
		}
		s.claimed = strings.Replace(s.claimed, fmt.Sprintf(",%d,", op.Value), ",", 1)
	}
	return s, blocks, result, true
}

// request takes a call and returns the answer, the old one if its request id is
// known.
func (s spec) request(op *history.Op) (after spec, blocks []history.Block, result int64, ok bool) {
	if op.Request == "" {
		return s.apply(op)
	}
	if _, rest, known := strings.Cut(s.done, op.Request+"="); known {
		// The answer is found by applying the call where it was applied first.
		var then int64
		var claimed string
		fmt.Sscanf(rest, "%d%s", &then, &claimed)
		_, blocks, result, _ = spec{last: then, claimed: claimed}.apply(op)
		return s, blocks, result, true
	}
	after, blocks, result, ok = s.apply(op)
	if ok {
		after.done += fmt.Sprintf("%s=%d%s;\n", op.Request, s.last, s.claimed)
	}
	return after, blocks, result, ok
}

// serve answers a call as a correct counter does: op has the outcome that its
// caller is to see, and gets the answer.
func (s spec) serve(op *history.Op) spec {
	if op.Outcome == history.Failed {
		return s
	}
	after, blocks, result, ok := s.request(op)
	if op.Outcome == history.OK && ok {
		op.Blocks, op.Result = blocks, result
	}
	if !ok && op.Outcome == history.OK {
		op.Outcome, op.Code = history.Failed, "REFUSED"
	}
	return after
}

// allows says whether a call may be the next one, and returns the state then.
func (s spec) allows(op *history.Op) (bool, spec) {
	after, blocks, result, ok := s.request(op)
	if op.Outcome == history.Unknown {
		return true, after
	}
	return ok && slices.Equal(blocks, op.Blocks) && result == op.Result, after
}
