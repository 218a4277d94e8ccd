package commit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

func TestALostQuorumFailsWhatIsUnderWayAtOnceAndTheRestAfterLeaderWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		under := r.propose(bg, "under way")
		r.next()
		waits := r.propose(bg, "waits")
		lost := time.Now()
		r.g.SetQuorum(false)
		a := get(t, under)
		want(t, a.err, outcome.Unknown, outcome.NoQuorum)
		if !a.at.Equal(lost) {
			t.Fatalf("answered %v after the loss", a.at.Sub(lost))
		}

		time.Sleep(time.Second)
		late := r.propose(bg, "late")
		pending(t, waits)
		time.Sleep(DefaultLeaderWait - time.Second)
		for _, c := range []<-chan proposeResult{waits, late} {
			a := get(t, c)
			want(t, a.err, outcome.NotApplied, outcome.NoQuorum)
			if d := a.at.Sub(lost); d != DefaultLeaderWait {
				t.Fatalf("answered %v after the loss", d)
			}
		}
		want(t, get(t, r.propose(bg, "after")).err, outcome.NotApplied, outcome.NoQuorum)

		r.g.SetQuorum(true)
		c := r.propose(bg, "healed")
		r.next().apply()
		wantOK(t, get(t, c), "healed")
	})
}

func TestAShortLossIsRiddenOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		for range 3 {
			r.g.SetQuorum(false)
			c := r.propose(bg, "x")
			time.Sleep(DefaultLeaderWait - time.Millisecond)
			r.none()
			r.g.SetQuorum(true)
			r.next().apply()
			wantOK(t, get(t, c), "x")
		}
		// The timer of a loss that is over must not end a later wait.
		r.g.SetQuorum(false)
		c := r.propose(bg, "x")
		r.g.unreachable(r.g.reach.outage - 1)
		pending(t, c)
		r.g.unreachable(r.g.reach.outage)
		want(t, get(t, c).err, outcome.NotApplied, outcome.NoQuorum)
	})
}

func TestWithoutALeaderEverybodyIsAnsweredAfterLeaderWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		tainted := r.propose(bg, "tainted")
		s := r.next()
		waits := r.propose(bg, "waits")
		r.g.SetLeader("")
		synctest.Wait()
		s.fail(errLost)
		time.Sleep(DefaultLeaderWait - time.Millisecond)
		pending(t, tainted)
		time.Sleep(time.Millisecond)
		want(t, get(t, tainted).err, outcome.Unknown, outcome.NoQuorum)
		want(t, get(t, waits).err, outcome.NotApplied, outcome.NoQuorum)
		want(t, get(t, r.propose(bg, "after")).err, outcome.NotApplied, outcome.NoQuorum)
		_, err := r.g.WaitLeader(bg)
		want(t, err, outcome.NotApplied, outcome.NoQuorum)

		r.g.SetLeader("b")
		synctest.Wait()
		c := r.propose(bg, "healed")
		s = r.next()
		if s.leader != "b" || s.group.Sequence != 2 || s.group.Acknowledged != 1 {
			t.Fatalf("sent to %s: %+v", s.leader, s.group)
		}
		s.apply()
		wantOK(t, get(t, c), "healed")
	})
}

func TestBeforeTheFirstLeaderOperationsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newLeaderlessRig(t, nil)
		c := r.propose(bg, "x")
		time.Sleep(DefaultLeaderWait)
		want(t, get(t, c).err, outcome.NotApplied, outcome.NoQuorum)
	})
}

func TestWaitLeaderWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		if leader, err := r.g.WaitLeader(bg); leader != "a" || err != nil {
			t.Fatalf("got %q, %v", leader, err)
		}
		r.g.SetLeader("")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := r.g.WaitLeader(ctx)
		want(t, err, outcome.NotApplied, outcome.Deadline)
		go func() {
			time.Sleep(time.Second / 2)
			r.g.SetLeader("b")
		}()
		if leader, err := r.g.WaitLeader(bg); leader != "b" || err != nil {
			t.Fatalf("got %q, %v", leader, err)
		}
	})
}

func TestCloseBringsHomeWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		under := r.propose(bg, "under way")
		s := r.next()
		waits := r.propose(bg, "waits")
		closed := make(chan struct{})
		go func() {
			r.g.Close(bg)
			close(closed)
		}()
		synctest.Wait()
		want(t, get(t, r.propose(bg, "late")).err, outcome.NotApplied, outcome.Stopping)
		s.apply()
		r.next().apply()
		wantOK(t, get(t, under), "under way")
		wantOK(t, get(t, waits), "waits")
		<-closed
		r.g.Close(bg)
		_, err := r.g.WaitLeader(bg)
		want(t, err, outcome.NotApplied, outcome.Stopping)
		r.g.SetQuorum(false)
		r.g.SetLeader("b")
	})
}

func TestCloseEndsEveryWaitInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		under := r.propose(bg, "under way")
		r.next()
		waits := r.propose(bg, "waits")
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		r.g.Close(ctx)
		if d := time.Since(start); d != time.Second {
			t.Fatalf("Close took %v", d)
		}
		want(t, get(t, under).err, outcome.Unknown, outcome.Stopping)
		want(t, get(t, waits).err, outcome.NotApplied, outcome.Stopping)
	})
}

func TestCloseWithoutALeaderWaitsNoLongerThanItsCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.g.SetLeader("")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		c := r.propose(ctx, "x")
		start := time.Now()
		r.g.Close(bg)
		if d := time.Since(start); d != time.Second {
			t.Fatalf("Close took %v", d)
		}
		want(t, get(t, c).err, outcome.NotApplied, outcome.Deadline)
	})
}

func TestProposeIdempotentIsSentUntilThereIsAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := make(chan proposeResult, 1)
		go func() {
			result, err := r.g.ProposeIdempotent(bg, []byte("announce"))
			c <- proposeResult{result: string(result), err: err}
		}()
		s := r.next()
		if len(s.group.Origin) != 0 || s.group.Session != 0 || s.group.Sequence != 0 {
			t.Fatalf("sent %+v", s.group)
		}
		s.fail(notLead)
		time.Sleep(lastBackoff)
		r.next().fail(errLost)
		time.Sleep(lastBackoff)
		r.next() // and never an answer: until another node leads
		r.g.SetLeader("")
		r.none()
		r.g.SetLeader("b")
		synctest.Wait()
		time.Sleep(lastBackoff)
		r.next().apply()
		wantOK(t, get(t, c), "announce")
	})
}

func TestProposeIdempotentTellsTheTruth(t *testing.T) {
	type step func(r *rig)
	fail := func(err error) step { return func(r *rig) { r.next().fail(err); time.Sleep(lastBackoff) } }
	leaderless := func(err error) step {
		return func(r *rig) {
			s := r.next()
			r.g.SetLeader("")
			synctest.Wait()
			s.fail(err)
			time.Sleep(DefaultLeaderWait)
		}
	}
	tests := []struct {
		name    string
		steps   []step
		outcome outcome.Outcome
		reason  outcome.Reason
	}{
		{"refused, then no leader", []step{leaderless(notLead)}, outcome.NotApplied, outcome.NoQuorum},
		{"lost, then no leader", []step{fail(notLead), leaderless(errLost)}, outcome.Unknown, outcome.NoQuorum},
		{"refused for good", []step{fail(overload)}, outcome.NotApplied, outcome.Overloaded},
		{"lost, then refused for good", []step{fail(errLost), fail(overload)}, outcome.Unknown, outcome.Overloaded},
		{"no answer", []step{func(*rig) { time.Sleep(DefaultGiveUp) }}, outcome.NotApplied, outcome.Deadline},
		{"a bad answer", []step{func(r *rig) { r.next().status(raftlog.StaleSession) }}, outcome.Unknown, outcome.Unspecified},
		{"stopping", []step{func(r *rig) { r.next(); r.g.stop() }}, outcome.Unknown, outcome.Stopping},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, nil)
				c := make(chan proposeResult, 1)
				go func() {
					_, err := r.g.ProposeIdempotent(bg, []byte("announce"))
					c <- proposeResult{err: err}
				}()
				for _, s := range test.steps {
					s(r)
				}
				want(t, get(t, c).err, test.outcome, test.reason)
			})
		})
	}
}

// TestPausesAreShortAgainWhenTheLeaderChanges: an election ends long pauses, and the next
// attempts follow each other as closely as the first ones did.
func TestPausesAreShortAgainWhenTheLeaderChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		var pauses retry
		lasts := func(want time.Duration) {
			t.Helper()
			begin := time.Now()
			r.g.pause(bg, &pauses)
			if took := time.Since(begin); took != want {
				t.Errorf("a pause of %s, want %s", took, want)
			}
		}
		for want := firstBackoff; want < lastBackoff; want *= 2 {
			lasts(want)
		}
		lasts(lastBackoff)
		lasts(lastBackoff)
		time.AfterFunc(time.Millisecond, func() { r.g.SetLeader("b") })
		lasts(time.Millisecond)
		lasts(firstBackoff)
		lasts(2 * firstBackoff)
	})
}
