package fsm

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const expired = raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED

// TestFirstTryAfterItsRetryWasForgotten: it does not run again. Nodes of the format
// before run it, whatever it says.
func TestFirstTryAfterItsRetryWasForgotten(t *testing.T) {
	for _, format := range []uint32{MergeFormat, StrictFormat} {
		l := newLogOf(t, format)
		l.mustApplied(l.do(opSet("request-window", 1)))
		first, retry := key(1, 1), key(1, 1)
		first.Since = l.index
		retry.Retry, retry.Since = true, l.index
		seed := opSeed("users", 100, true, nil)
		l.mustApplied(l.do(keyed(seed, retry)))
		diff(t, int64(100), l.do(keyed(seed, first)).GetValue()) // still remembered
		l.mustApplied(l.do(keyed(opNext("users", 50), key(2, 1))))
		l.state = restored(t, snapshotOf(t, l.state))
		late, want := l.do(keyed(seed, first)).GetRefusal().GetReason(), int64(150)
		if ran := late != expired; ran != (format < StrictFormat) {
			t.Errorf("format %d: a first try that is late: %v", format, late)
		} else if ran {
			want = 100
		}
		if c, _ := l.state.Identity("db", "users"); c.Last != want {
			t.Errorf("format %d: the identity stands at %d, want %d", format, c.Last, want)
		}
	}
}

// TestRequestRememberedFromTheFormatBefore: it is found under the fingerprint that it
// had then. A node of that format cannot read an operation that names one.
func TestRequestRememberedFromTheFormatBefore(t *testing.T) {
	k := func(n int, fingerprint, before uint64) *raftlogv1.RequestKey {
		k := key(n, fingerprint)
		k.FingerprintBefore = before
		return k
	}
	reason := func(r *raftlogv1.Result) raftlogv1.RefusalReason { return r.GetRefusal().GetReason() }
	l := newLogOf(t, MergeFormat)
	if got := reason(l.do(keyed(opNext("users", 1), k(2, 4, 3)))); got != raftlogv1.RefusalReason_REFUSAL_REASON_INVALID {
		t.Errorf("in the format before: %v", got)
	}
	l.mustApplied(l.do(keyed(opNext("users", 1), k(1, 3, 0))))
	for _, tag := range []string{"A", "B", "C"} {
		m := testMember(tag)
		m.LogFormat = StrictFormat
		l.mustApplied(l.raw(announceOperation(m)))
	}
	l.mustApplied(l.raw(formatRaiseOperation(StrictFormat)))
	l.mustApplied(l.do(keyed(opNext("users", 1), k(1, 4, 3))))
	l.mustApplied(l.do(keyed(opNext("users", 1), k(2, 4, 3))))
	l.mustApplied(l.do(keyed(opNext("users", 1), k(2, 4, 3))))
	if c, _ := l.state.Identity("db", "users"); c.Last != 2 {
		t.Errorf("the identity stands at %d, want 2", c.Last)
	}
	for n := range 2 { // Another request, of which the older fingerprint is the same.
		if got := reason(l.do(keyed(opNext("users", 1), k(2, 5, 3*uint64(n))))); got != raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED {
			t.Errorf("another request: %v", got)
		}
	}
}

// TestFirstTriesThatAreNotLate run: also those of nodes that lag behind, as long as
// nothing was forgotten since, and those that do not say.
func TestFirstTriesThatAreNotLate(t *testing.T) {
	l := newLogOf(t, StrictFormat)
	l.mustApplied(l.do(opSet("request-window", 2)))
	since := l.index
	for n := range 2 {
		k := key(n, 1)
		k.Since = since
		l.mustApplied(l.do(keyed(opNext("users", 1), k)))
	}
	l.mustApplied(l.do(keyed(opNext("users", 1), key(7, 1))))
	k := key(8, 1)
	k.Since = l.index - 2 // where the oldest one was applied that is forgotten now
	l.mustApplied(l.do(keyed(opNext("users", 1), k)))
}
