package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/idnode/idnode/test/history"
)

// Violation is one thing that cannot have happened, or cannot be decided.
type Violation struct {
	// Rule names the rule: "identities/twice".
	Rule string
	// Where is the counter, node or tag: "default/orders".
	Where string
	// Why says what is wrong, with the times of the calls.
	Why string
	// Ops are the positions of the calls in the history, counted from 1: line
	// numbers, if it came from a file.
	Ops []int
}

// String is the violation in one line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Where, v.Why) }

// Calls counts how calls of one kind ended.
type Calls struct {
	OK, Failed, Unknown int
	// Longest is the longest time any of them took, and LongestOp which one that
	// was. Time in which the machine stood still is not counted.
	Longest   time.Duration
	LongestOp int
}

// Report is the verdict on one history.
type Report struct {
	// Ops is how many operations and events there were.
	Ops int
	// Calls counts the calls by kind.
	Calls map[history.Kind]Calls
	// Numbers is how many identity values, HiLo numbers used and etags were
	// handed out for certain.
	Identities, HiLoUsed, Etags int64
	// SeriesNumbers is how many numbers of series were given for certain.
	SeriesNumbers int64
	// Snowflakes is how many Snowflake ids were made.
	Snowflakes int64
	// Holes is how many identity values nobody was answered with; each is
	// explained by calls of unknown outcome, claims or seeds unless there is a
	// violation.
	Holes int64
	// Searched is what Porcupine judged; nil if it was not asked.
	Searched *Searched
	// Violations are at most maxFindings of each rule.
	Violations []Violation
	// Undecided are questions that could not be answered.
	Undecided []Violation
	// More is how many violations are left out.
	More int
}

// OK says that the history was decided, and breaks no rule.
func (r *Report) OK() bool { return len(r.Violations) == 0 && len(r.Undecided) == 0 }

// Err is nil if the report is OK, and else the first finding.
func (r *Report) Err() error {
	switch {
	case r.OK():
		return nil
	case len(r.Violations) > 0:
		return fmt.Errorf("%d violations, the first: %s", len(r.Violations)+r.More, r.Violations[0])
	default:
		return fmt.Errorf("undecided: %s", r.Undecided[0])
	}
}

// Write writes the report for people. If line is not nil it shows the calls of a
// finding as they stand in the history.
func (r *Report) Write(w io.Writer, line func(op int) string) error {
	p := printer{w: w}
	p.printf("%d operations: %d identity values (%d holes), %d HiLo numbers used, %d etags, %d numbers of series, %d Snowflake ids\n",
		r.Ops, r.Identities, r.Holes, r.HiLoUsed, r.Etags, r.SeriesNumbers, r.Snowflakes)
	for _, kind := range slices.Sorted(maps.Keys(r.Calls)) {
		c := r.Calls[kind]
		p.printf("  %-8s %9d ok %8d failed %8d unknown   longest %s (operation %d)\n",
			kind, c.OK, c.Failed, c.Unknown, c.Longest.Round(time.Microsecond), c.LongestOp)
	}
	if r.Searched != nil {
		r.Searched.write(&p)
	}
	p.findings("VIOLATION", r.Violations, line)
	p.findings("UNDECIDED", r.Undecided, line)
	switch {
	case r.OK():
		p.printf("no violation\n")
	default:
		p.printf("%d violations, %d undecided\n", len(r.Violations)+r.More, len(r.Undecided))
	}
	return p.err
}

// printer remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) findings(title string, list []Violation, line func(int) string) {
	for _, v := range list {
		p.printf("%s %s\n", title, v)
		if line == nil {
			continue
		}
		for _, op := range v.Ops {
			p.printf("    %d: %s\n", op, line(op))
		}
	}
}

// maxFindings is how many findings of one rule a report has.
const maxFindings = 20

// findings gathers what the checkers find. A nil Ops entry is left out.
type findings struct {
	violations, undecided []Violation
	count                 map[string]int
	more                  int
}

func (f *findings) violation(rule, where string, ops []int, format string, args ...any) {
	if f.room(rule) {
		f.violations = append(f.violations, Violation{rule, where, fmt.Sprintf(format, args...), ops})
	}
}

func (f *findings) unknown(rule, where string, ops []int, format string, args ...any) {
	if f.room(rule) {
		f.undecided = append(f.undecided, Violation{rule, where, fmt.Sprintf(format, args...), ops})
	}
}

func (f *findings) room(rule string) bool {
	if f.count == nil {
		f.count = make(map[string]int)
	}
	f.count[rule]++
	if f.count[rule] <= maxFindings {
		return true
	}
	f.more++
	return false
}

// at shows a time of a history.
func at(ns int64) string {
	if ns == history.Never {
		return "never"
	}
	return time.Duration(ns).String()
}
