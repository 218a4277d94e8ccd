package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// refusals are the codes that a call may end with on a node without a quorum:
// those of the product, and what a client gets when the node or its answer is
// gone, or its own time is over.
var refusals = []string{
	"NO_QUORUM", "LEADER_UNREACHABLE", "OUTCOME_UNKNOWN", "STARTING", "STOPPING", "Unavailable", "DeadlineExceeded", "Canceled",
}

// longest is how long a node may take for a call, as long as its disk does not hang.
// It is twice what a node allows itself: one whose disk had failed once took 3.9 s
// (seed 334), for a reason that is not known.
const longest = 5 * time.Second

// mute are the faults after which a client waits for a node that is not there, or
// whose disk hangs.
var mute = []fault{powerLoss, blackouts, torn, setBack, orphans, deafness, stalls}

// judge returns what in a history cannot have happened.
func judge(p plan, ops []history.Op) []string {
	o := check.Options{Refusals: refusals, Longest: longest}
	// A machine that is replaced may lose its power, and its callers wait for it too.
	if p.churn || p.rewinds || p.scenario != "" || slices.ContainsFunc(p.faults, func(f fault) bool { return slices.Contains(mute, f) }) {
		o.Longest = 0
	}
	if o.Longest > 0 && p.slow.network > 0 {
		o.Longest += 3 * longestDelay // The connection's greeting, the call, and its answer.
	}
	report := check.Ops(ops, o)
	wrong := misplaced(ops)
	for _, v := range append(report.Violations, report.Undecided...) {
		wrong = append(wrong, v.String())
	}
	return wrong
}

// misplaced returns the calls that ended with an error that is never right, or
// were refused for what is wrong with others: no call of a history is malformed.
func misplaced(ops []history.Op) (wrong []string) {
	for _, op := range ops {
		if op.Code == "INTERNAL" {
			wrong = append(wrong, fmt.Sprintf("a %s call ended with INTERNAL", op.Kind))
		}
		if op.Outcome == history.Failed && op.Kind != history.Other && strings.HasPrefix(op.Code, "INVALID") {
			wrong = append(wrong, fmt.Sprintf("a %s call, in which nothing is wrong, was refused with %s", op.Kind, op.Code))
		}
	}
	return wrong
}
