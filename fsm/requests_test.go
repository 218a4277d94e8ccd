package fsm

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const expired = raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED

// TestFirstTryAfterItsRetryWasForgotten: it does not run again.
func TestFirstTryAfterItsRetryWasForgotten(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("request-window", 1)))
	first, retry := key(1, 1), key(1, 1)
	first.Since = l.index
	retry.Retry, retry.Since = true, l.index
	seed := opSeed("users", 100, true, nil)
	l.mustApplied(l.do(keyed(seed, retry)))
	diff(t, int64(100), l.do(keyed(seed, first)).GetValue()) // still remembered
	l.mustApplied(l.do(keyed(opNext("users", 50), key(2, 1))))
	l.state = restored(t, snapshotOf(t, l.state))
	diff(t, expired, l.do(keyed(seed, first)).GetRefusal().GetReason())
	if c, _ := l.state.Identity("db", "users"); c.Last != 150 {
		t.Errorf("the identity stands at %d, want 150", c.Last)
	}
}

// TestFirstTriesThatAreNotLate run: also those of nodes that lag behind, as long as
// nothing was forgotten since, and those that do not say.
func TestFirstTriesThatAreNotLate(t *testing.T) {
	l := newFormedLog(t)
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
