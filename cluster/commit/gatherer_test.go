package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

var (
	errLost  = errors.New("the stream broke")
	bg       = context.Background()
	notLead  = outcome.NewNotApplied(outcome.NotLeader, nil)
	overload = outcome.NewNotApplied(outcome.Overloaded, nil)
)

func TestALoneCallerNeverLingers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Linger = time.Second })
		start := time.Now()
		for i := range 3 {
			c := r.propose(bg, fmt.Sprint(i))
			r.next().apply()
			wantOK(t, get(t, c), fmt.Sprint(i))
		}
		if d := time.Since(start); d != 0 {
			t.Fatalf("it took %v", d)
		}
	})
}

func TestTheNextGroupFillsWhileOneIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		first := r.propose(bg, "first")
		s := r.next()
		var callers []<-chan proposeResult
		for i := range 9 {
			callers = append(callers, r.propose(bg, fmt.Sprint(i)))
		}
		r.none()
		s.apply()
		wantOK(t, get(t, first), "first")
		s = r.next()
		if len(s.group.Operations) != 9 || s.group.Sequence != 2 || s.group.Acknowledged != 1 {
			t.Fatalf("group %d has %d operations and acknowledges %d", s.group.Sequence, len(s.group.Operations), s.group.Acknowledged)
		}
		s.apply()
		for i, c := range callers {
			wantOK(t, get(t, c), fmt.Sprint(i))
		}
	})
}

func TestGroupsAreCut(t *testing.T) {
	tests := []struct {
		name      string
		change    func(*Config)
		operation string
		sizes     []int
	}{
		{"by operations", func(c *Config) { c.MaxOperations = 3 }, "x", []int{3, 3, 1}},
		{"by bytes", func(c *Config) { c.MaxGroupBytes = 250 }, strings.Repeat("x", 96), []int{2, 2, 2, 1}},
		{"by results", func(c *Config) { c.ResultBound, c.MaxResultBytes = func([]byte) int { return 40 }, 100 }, "x", []int{2, 2, 2, 1}},
		{
			"by results that are too large alone", func(c *Config) { c.ResultBound, c.MaxResultBytes = func([]byte) int { return 400 }, 100 }, "x",
			[]int{1, 1, 1, 1, 1, 1, 1},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, test.change)
				r.propose(bg, "first")
				s := r.next()
				for range 7 {
					r.propose(bg, test.operation)
				}
				s.apply()
				for i, size := range test.sizes {
					s = r.next()
					if len(s.group.Operations) != size {
						t.Fatalf("group %d has %d operations, want %d", i, len(s.group.Operations), size)
					}
					s.apply()
				}
				r.none()
			})
		})
	}
}

// TestAnAnswerThatIsTooLarge is the error of its group's callers: it would be too large again,
// and those behind it would wait for ever.
func TestAnAnswerThatIsTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		first := r.propose(bg, "first")
		s := r.next()
		second := r.propose(bg, "second")
		s.fail(outcome.NewUnknown(outcome.TooLarge, nil))
		want(t, get(t, first).err, outcome.Unknown, outcome.TooLarge)
		s = r.next()
		if s.group.Sequence != 2 || s.group.Acknowledged != 1 {
			t.Errorf("group %d acknowledges %d", s.group.Sequence, s.group.Acknowledged)
		}
		s.apply()
		wantOK(t, get(t, second), "second")
	})
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	tests := map[string]func(*Config){
		"by operations": func(c *Config) { c.QueueLength = 2 },
		"by bytes":      func(c *Config) { c.MaxGroupBytes, c.QueueBytes = 20, 20 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change)
				under := r.propose(bg, "123456")
				s := r.next()
				one, two := r.propose(bg, "123456"), r.propose(bg, "123456")
				want(t, get(t, r.propose(bg, "123456")).err, outcome.NotApplied, outcome.Overloaded)
				s.apply()
				r.next().apply()
				for _, c := range []<-chan proposeResult{under, one, two} {
					wantOK(t, get(t, c), "123456")
				}
			})
		})
	}
}

func TestAnOperationThatCanNeverFitIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxGroupBytes = 100 })
		want(t, get(t, r.propose(bg, strings.Repeat("x", 97))).err, outcome.NotApplied, outcome.TooLarge)
		_, err := r.g.ProposeIdempotent(bg, make([]byte, 97))
		want(t, err, outcome.NotApplied, outcome.TooLarge)
		r.propose(bg, strings.Repeat("x", 96))
		r.next().apply()
	})
}

func TestACallerThatGoesAwayIsToldTheTruth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		ended, cancel := context.WithCancel(bg)
		cancel()
		want(t, get(t, r.propose(ended, "ended")).err, outcome.NotApplied, outcome.Deadline)

		ctx, cancel := context.WithCancel(bg)
		under := r.propose(ctx, "under way")
		s := r.next()
		waits := r.propose(ctx, "waits")
		stays := r.propose(bg, "stays")
		cancel()
		want(t, get(t, under).err, outcome.Unknown, outcome.Deadline)
		want(t, get(t, waits).err, outcome.NotApplied, outcome.Deadline)
		s.apply()
		s = r.next()
		if len(s.group.Operations) != 1 {
			t.Fatalf("the group has %d operations", len(s.group.Operations))
		}
		s.apply()
		wantOK(t, get(t, stays), "stays")
	})
}

func TestARefusedGroupGoesToTheNextLeaderUnderANewNumber(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(bg)
		stays, leaves := r.propose(bg, "stays"), r.propose(ctx, "leaves")
		first := r.next()
		first.fail(notLead)
		r.g.SetLeader("")
		synctest.Wait()
		time.Sleep(time.Second)
		r.none()
		cancel()
		want(t, get(t, leaves).err, outcome.NotApplied, outcome.Deadline)
		r.g.SetLeader("b")
		s := r.next()
		if s.leader != "b" || s.group.Sequence != 2 || s.group.Acknowledged != 1 || len(s.group.Operations) != 1 {
			t.Fatalf("sent to %s: %+v", s.leader, s.group)
		}
		s.apply()
		wantOK(t, get(t, stays), "stays")
	})
}

func TestAnUnknownGroupIsSentAgainByteForByte(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := r.propose(bg, "x")
		first := r.next()
		first.fail(errLost)
		again := r.next()
		if again.raw != first.raw || again.leader != "a" {
			t.Fatalf("sent again to %s: %+v", again.leader, again.group)
		}
		again.fail(outcome.NewUnknown(outcome.LeadershipLost, nil))
		r.none()
		r.g.SetLeader("b")
		again = r.next()
		if again.raw != first.raw || again.leader != "b" {
			t.Fatalf("sent again to %s: %+v", again.leader, again.group)
		}
		// A refusal of this sending says nothing of the earlier ones.
		again.fail(notLead)
		synctest.Wait()
		time.Sleep(lastBackoff)
		again = r.next()
		if again.raw != first.raw {
			t.Fatalf("sent again: %+v", again.group)
		}
		again.apply()
		wantOK(t, get(t, c), "x")
	})
}

func TestANewLeaderEndsTheWaitForTheOldOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := r.propose(bg, "x")
		first := r.next() // and never an answer
		r.g.SetLeader("")
		r.none()
		r.g.SetLeader("a")
		r.none()
		r.g.SetLeader("b")
		again := r.next()
		if again.raw != first.raw || again.leader != "b" {
			t.Fatalf("sent again to %s: %+v", again.leader, again.group)
		}
		again.apply()
		wantOK(t, get(t, c), "x")
	})
}

func TestALeaderThatRefusesForGoodIsBelieved(t *testing.T) {
	for _, reason := range []outcome.Reason{outcome.Overloaded, outcome.StorageFull, outcome.TooLarge, outcome.Invalid} {
		t.Run(reason.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, nil)
				clean := r.propose(bg, "clean")
				r.next().fail(outcome.NewNotApplied(reason, nil))
				want(t, get(t, clean).err, outcome.NotApplied, reason)

				tainted := r.propose(bg, "tainted")
				r.next().fail(errLost)
				r.next().fail(outcome.NewNotApplied(reason, nil))
				want(t, get(t, tainted).err, outcome.Unknown, reason)
			})
		})
	}
}

func TestAStaleSessionIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := r.propose(bg, "never sent before")
		r.next().status(raftlog.StaleSession)
		synctest.Wait()
		time.Sleep(firstBackoff)
		s := r.next()
		if s.group.Session != 2 || s.group.Sequence != 1 || s.group.Acknowledged != 0 {
			t.Fatalf("sent again: %+v", s.group)
		}
		s.apply()
		wantOK(t, get(t, c), "never sent before")

		c = r.propose(bg, "perhaps applied")
		r.next().fail(errLost)
		r.next().status(raftlog.StaleSession)
		want(t, get(t, c).err, outcome.Unknown, outcome.SessionLost)

		c = r.propose(bg, "next")
		s = r.next()
		if s.group.Session != 3 || s.group.Sequence != 1 {
			t.Fatalf("the next group is %+v", s.group)
		}
		s.status(raftlog.StaleSequence)
		want(t, get(t, c).err, outcome.Unknown, outcome.SessionLost)
	})
}

func TestAnAnswerThatDoesNotFitIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		for _, result := range []raftlog.GroupResult{
			{},
			{Status: raftlog.Applied},
			{Status: raftlog.Applied, Results: make([][]byte, 2)},
		} {
			c := r.propose(bg, "x")
			r.next().answer <- sent{result: result}
			want(t, get(t, c).err, outcome.Unknown, outcome.Unspecified)
		}
	})
}

func TestASessionThatCannotBeOpenedFailsItsCallersInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.opener.err = outcome.NewNotApplied(outcome.Starting, nil)
		start := time.Now()
		c := r.propose(bg, "x")
		time.Sleep(DefaultLeaderWait + lastBackoff)
		a := get(t, c)
		want(t, a.err, outcome.NotApplied, outcome.Starting)
		if d := a.at.Sub(start); d < DefaultLeaderWait {
			t.Fatalf("answered after %v", d)
		}
		r.opener.mu.Lock()
		r.opener.err = nil
		r.opener.mu.Unlock()
		c = r.propose(bg, "y")
		time.Sleep(lastBackoff)
		r.next().apply()
		wantOK(t, get(t, c), "y")
	})
}

// failAll fails each sending until the caller is answered.
func (r *rig) failAll(caller <-chan proposeResult, err error) proposeResult {
	for {
		synctest.Wait()
		select {
		case s := <-r.sender:
			s.fail(err)
		case a := <-caller:
			return a
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

func TestGiveUpBoundsAGroupThatIsNeverAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		start := time.Now()
		a := r.failAll(r.propose(bg, "under way"), errLost)
		want(t, a.err, outcome.Unknown, outcome.NoQuorum)
		if d := a.at.Sub(start); d < DefaultGiveUp || d > DefaultGiveUp+lastBackoff {
			t.Fatalf("given up after %v", d)
		}
	})
}

func TestALeaderThatRefusesForLongFailsTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		start := time.Now()
		a := r.failAll(r.propose(bg, "x"), notLead)
		want(t, a.err, outcome.NotApplied, outcome.NoQuorum)
		if d := a.at.Sub(start); d < DefaultLeaderWait || d > DefaultLeaderWait+lastBackoff {
			t.Fatalf("refused after %v", d)
		}
	})
}

func TestLingerWaitsForTheCallersJustAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound, round = 5 * time.Millisecond, 2 * time.Millisecond
		r := newRig(t, func(c *Config) { c.Linger, c.LingerMin = bound, 2 })
		apply := func(s sending) {
			time.Sleep(round)
			s.apply()
			synctest.Wait()
		}
		r.propose(bg, "first")
		s := r.next()
		for range 4 {
			r.propose(bg, "x")
		}
		apply(s)
		// Those that came meanwhile go, once the one just answered is back.
		r.none()
		r.propose(bg, "first again")
		s = r.next()
		if len(s.group.Operations) != 5 {
			t.Fatalf("a group of %d", len(s.group.Operations))
		}
		apply(s)

		// As many as before go at once.
		start := time.Now()
		for i := range 5 {
			r.none()
			r.propose(bg, fmt.Sprint(i))
		}
		s = r.next()
		if len(s.group.Operations) != 5 || time.Since(start) != 0 {
			t.Fatalf("a group of %d after %v", len(s.group.Operations), time.Since(start))
		}
		apply(s)

		// Fewer go when the time is over.
		r.propose(bg, "y")
		r.none()
		time.Sleep(bound)
		s = r.next()
		if len(s.group.Operations) != 1 {
			t.Fatalf("a group of %d", len(s.group.Operations))
		}
		apply(s)
	})
}

// TestHowLongAGroupLingers: a few rounds, and fewer operations than LingerMin a part of one.
func TestHowLongAGroupLingers(t *testing.T) {
	for _, tt := range []struct {
		min           int
		round, linger time.Duration
	}{
		{2, time.Millisecond, lingerShare * time.Millisecond},
		{4, 4 * time.Millisecond, 4 * time.Millisecond / lingerFew},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Linger, c.LingerMin = time.Second, tt.min })
			r.propose(bg, "1")
			s := r.next()
			r.propose(bg, "2")
			time.Sleep(tt.round)
			s.apply()
			r.none()
			time.Sleep(tt.linger - time.Nanosecond)
			r.none()
			time.Sleep(time.Nanosecond)
			s = r.next()
			s.apply()
		})
	}
}

func TestNobodyWaitsForMoreThanIsWorthIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Linger = time.Second })
		r.propose(bg, "first")
		s := r.next()
		for range 3 * lingerEnough {
			r.propose(bg, "x")
		}
		time.Sleep(time.Second)
		s.apply()
		s = r.next()
		if len(s.group.Operations) != 3*lingerEnough {
			t.Errorf("a group of %d", len(s.group.Operations))
		}
		s.apply()
	})
}
