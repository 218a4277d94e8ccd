package outcome

import (
	"errors"
	"fmt"
	"testing"
)

func TestWhatAnErrorSays(t *testing.T) {
	cause := errors.New("cause")
	tests := []struct {
		name    string
		err     error
		outcome Outcome
		reason  Reason
	}{
		{"no error", nil, Applied, Unspecified},
		{"not applied", NewNotApplied(NoQuorum, cause), NotApplied, NoQuorum},
		{"unknown", NewUnknown(LeadershipLost, nil), Unknown, LeadershipLost},
		{"wrapped", fmt.Errorf("outer: %w", NewNotApplied(Stopping, nil)), NotApplied, Stopping},
		{"an error that does not say", cause, Unknown, Unspecified},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if o, r := Of(test.err), ReasonOf(test.err); o != test.outcome || r != test.reason {
				t.Errorf("got %v, %v, want %v, %v", o, r, test.outcome, test.reason)
			}
		})
	}
	if !errors.Is(NewUnknown(Storage, cause), cause) {
		t.Error("the cause is lost")
	}
}

// TestReasonsKeepTheirNumbers matters because they travel between nodes of
// different versions.
func TestReasonsKeepTheirNumbers(t *testing.T) {
	names := []string{
		"unspecified", "no quorum", "not the leader", "overloaded", "starting", "stopping", "storage full",
		"too large", "deadline", "leadership lost", "storage error", "session lost", "invalid", "leader unreachable",
	}
	if len(names) != len(reasonNames) {
		t.Errorf("there are %d reasons, want %d", len(reasonNames), len(names))
	}
	for i, name := range names {
		if got := Reason(i).String(); got != name {
			t.Errorf("reason %d is %q, want %q", i, got, name)
		}
	}
	if got := Reason(200).String(); got != "reason 200" {
		t.Errorf("got %q", got)
	}
}

func TestErrorsSayWhatHappened(t *testing.T) {
	for want, err := range map[string]error{
		"not applied: too large":        NewNotApplied(TooLarge, nil),
		"unknown: storage error: cause": NewUnknown(Storage, errors.New("cause")),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if Applied.String() != "applied" {
		t.Error(Applied)
	}
}
