package fsm

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
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

// TestTheNewestForgottenRequestID is reported by the log index at which it was applied, also after a
// restart.
func TestTheNewestForgottenRequestID(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("request-window", 2)))
	var applied []uint64
	for i := range 5 {
		l.mustApplied(l.do(keyed(opNext("users", 1), key(i, 1))))
		applied = append(applied, l.index)
		want := uint64(0)
		if i >= 2 {
			want = applied[i-2]
		}
		diff(t, want, l.state.Counts().RequestsForgotten)
		l.state = restored(t, snapshotOf(t, l.state))
		diff(t, want, l.state.Counts().RequestsForgotten)
	}
}

// TestALoweredWindowShrinksInPortions, one with each entry, also behind a restart. Until an id is forgotten it
// is answered, and it never counts again.
func TestALoweredWindowShrinksInPortions(t *testing.T) {
	const all = 5*requestsAtOnce + 7
	l := newFormedLog(t)
	l.fillEncoded(all, func(i int) []byte { return encodeOperation(keyed(opNext("users", 1), key(i, 1))) })
	l.do(opSet("request-window", 3))
	for left := uint64(all - requestsAtOnce); ; left = uint64(max(3, int64(left)-requestsAtOnce)) {
		diff(t, left, l.state.Counts().Requests)
		diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
		if left == 3 {
			break
		}
		l.state = restored(t, snapshotOf(t, l.state))
		l.do(keyed(opNext("users", 1), key(all-1, 1)))
	}
	again := l.do(keyed(opNext("users", 1), key(all-1, 1)))
	diff(t, int64(all), again.GetIdentityNext().GetValues()[0].GetFirst())
	late := keyed(opNext("users", 1), key(0, 1))
	late.Request.Retry = true
	diff(t, raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_EXPIRED, l.mustRefuse("forgotten", late).GetReason())
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

// callOf is a call of a principal with its n-th request id.
func callOf(principal string, n int) *raftlogv1.Operation {
	o := keyed(opNext("of "+principal, 1), key(n, 1))
	o.Principal = proto.String(principal)
	return o
}

// retryOf is the retry of a call, whose caller had seen an index before the first try.
func retryOf(principal string, n int, since uint64) *raftlogv1.Operation {
	o := callOf(principal, n)
	o.Request.Retry, o.Request.Since = true, since
	return o
}

// flood makes calls of one principal, some in each entry, and restarts in their middle.
func (l *testLog) flood(from, to int) {
	l.t.Helper()
	for n := from; n < to; {
		var g raftlog.Group
		for ; n < to && len(g.Operations) < 7; n++ {
			g.Operations = append(g.Operations, encodeOperation(callOf("flood", n)))
		}
		l.apply(g)
		if (to-n)/7 == (to-from)/14 {
			l.state = restored(l.t, snapshotOf(l.t, l.state))
		}
	}
}

// TestAFloodPushesOutItsOwn: of n principals in a window of l request ids each keeps its newest l/n
// - 1, rounded up, and the forgotten ids of another do not affect it.
func TestAFloodPushesOutItsOwn(t *testing.T) {
	for _, c := range []struct{ window, quiet int }{{3, 1}, {4, 1}, {10, 2}, {100, 1}, {100, 3}, {3000, 4}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			l := newFormedLog(t)
			l.mustApplied(l.do(opSet("request-window", int64(c.window))))
			before := l.index
			l.flood(0, 2*c.window)
			first, kept := map[string]*raftlogv1.Result{}, (c.window-1)/(c.quiet+1)
			for n := range kept {
				for quiet := range c.quiet {
					name := fmt.Sprint("quiet ", quiet)
					first[fmt.Sprint(name, n)] = l.mustApplied(l.do(callOf(name, n)))
				}
			}
			l.flood(2*c.window, 7*c.window)
			diff(t, expired, l.do(retryOf("flood", 0, before)).GetRefusal().GetReason())
			for quiet := range c.quiet {
				name := fmt.Sprint("quiet ", quiet)
				for n := range kept {
					diff(t, first[fmt.Sprint(name, n)], l.do(retryOf(name, n, before)))
				}
				l.mustApplied(l.do(retryOf(name, kept, before))) // Its first try did not arrive.
			}
		})
	}
}

// TestAKeyInTheShareOfAnother answers no call by the result of another, as a forged snapshot
// could have it.
func TestAKeyInTheShareOfAnother(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(callOf("B", 0)))
	for n, position := range []uint64{0, 5} { // In B's share, and not.
		o := callOf("B", n+1)
		l.state.contents.requests.positions[ownKey([16]byte(o.GetRequest().GetKey()), []byte("B"))] = position
		diff(t, raftlogv1.RefusalReason_REFUSAL_REASON_REQUEST_ID_REUSED, l.do(o).GetRefusal().GetReason())
	}
}

// TestAShareProtectsWhatIsYoung: a principal that calls no more does not keep its share.
func TestAShareProtectsWhatIsYoung(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("request-window", 10)))
	before := l.index
	l.mustApplied(l.do(callOf("quiet", 1)))
	called := l.index
	l.flood(0, 100)
	l.index = called + requestShelter - 1
	l.mustApplied(l.do(callOf("flood", 101)))
	diff(t, called, l.do(retryOf("quiet", 1, before)).GetLogIndex())
	l.mustApplied(l.do(callOf("flood", 102)))
	diff(t, expired, l.do(retryOf("quiet", 1, before)).GetRefusal().GetReason())
}

// TestARetryOfALostCall: the survivor of a recovery does not know whether the lost members applied a call
// that it has not, so the retry is refused, wherever its caller was in the old log, and however many entries the
// new log has by then; calls of the new log run.
func TestARetryOfALostCall(t *testing.T) {
	for _, after := range []int{-2, 0, 1, 50, 1 << 40} {
		l := newFormedLog(t)
		l.announce("A")
		remembered := l.mustApplied(l.do(callOf("known", 0)))
		since := uint64(int(l.index) + after)
		l.recover(Recovery{Keep: []string{"A"}, SkipAhead: 1000})
		for n, who := range []string{"known", "new"} {
			l.state = restored(t, snapshotOf(t, l.state))
			if n > 0 {
				l.announce("A")
			}
			for range 60 { // As many as the old log had, and more.
				diff(t, expired, l.do(retryOf(who, 1, since)).GetRefusal().GetReason())
			}
		}
		diff(t, remembered, l.do(retryOf("known", 0, since)))
		first := callOf("new", 1)
		first.Request.Since = l.index
		l.mustApplied(l.do(first))
		l.mustApplied(l.do(retryOf("new", 2, l.index)))
	}
}

// TestARecoveryBetweenTryAndRetry, at every moment: the lost members had applied the call at any place of their log,
// or not at all; the survivor had as much of that as it may; its new log has grown by any number of entries; and the
// caller had seen the old log up to any place before its first try. The retry never counts beside a try that counted.
func TestARecoveryBetweenTryAndRetry(t *testing.T) {
	const length = 5
	for tried := range length {
		for survived := range length + 1 {
			for later := range length + 2 {
				for seen := range tried + 1 {
					l := newFormedLog(t)
					l.announce("A")
					first := l.index
					var answer *raftlogv1.Result
					for place := range survived {
						if place == tried {
							answer = l.mustApplied(l.do(callOf("who", 1)))
							continue
						}
						l.mustApplied(l.do(opNext("others", 1)))
					}
					l.recover(Recovery{Keep: []string{"A"}, SkipAhead: 1000})
					l.announce("A")
					for range later {
						l.mustApplied(l.do(opNext("others", 1)))
					}
					got := l.do(retryOf("who", 1, first+uint64(seen)))
					if answer != nil {
						diff(t, answer, got)
					} else if got.GetRefusal().GetReason() != expired {
						t.Fatalf("tried at %d of which %d survived, %d entries later, seen up to %d: %v", tried, survived, later, seen, got)
					}
				}
			}
		}
	}
}
