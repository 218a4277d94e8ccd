package commit

import (
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/outcome"
)

// limit is the CallLimit of these tests; it is kept to an eighth.
const limit = 8 * time.Second

func expiring(c *Config) {
	c.CallLimit = limit
	c.LeaderWait, c.SendTimeout, c.GiveUp = time.Minute, time.Minute, time.Minute
}

// wantAfter checks that an answer came between limit and an eighth later.
func wantAfter(t *testing.T, a proposeResult, start time.Time) {
	t.Helper()
	if d := a.at.Sub(start); d < limit || d > limit+limit/expirySteps {
		t.Errorf("answered after %v", d)
	}
}

func TestAnOperationInAGroupIsUnknownAfterTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, expiring)
		start := time.Now()
		first := r.propose(bg, "first")
		s := r.next()
		second := r.propose(bg, "second")

		a := <-first
		want(t, a.err, outcome.Unknown, outcome.Deadline)
		wantAfter(t, a, start)
		a = <-second
		want(t, a.err, outcome.NotApplied, outcome.Deadline)
		wantAfter(t, a, start)

		// The answer that comes after all reaches nobody, and nobody else's call.
		third := r.propose(bg, "third")
		s.apply()
		r.next().apply()
		wantOK(t, get(t, third), "third")
	})
}

func TestOnlyTheOldOfAGroupAreGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, expiring)
		r.propose(bg, "first")
		s := r.next()
		old := r.propose(bg, "old")
		time.Sleep(limit / 2)
		young := r.propose(bg, "young")
		s.apply()
		s = r.next()
		want(t, (<-old).err, outcome.Unknown, outcome.Deadline)
		s.apply()
		wantOK(t, get(t, young), "young")
	})
}

// stalled makes the clock of expiry stand still for six seconds after it has ended the
// first call, as a machine does on which the process gets no turn. It returns a group
// that is in flight then, and is due in the middle of that time.
func stalled(t *testing.T) (s sending, due <-chan proposeResult, goesOn time.Time) {
	t.Helper()
	const stall = 6 * time.Second
	var once sync.Once
	r := newRig(t, func(c *Config) {
		expiring(c)
		c.Events.GivenUp = func(int, error) { once.Do(func() { time.Sleep(stall) }) }
	})
	r.propose(bg, "before")
	before := r.next()
	start := time.Now()
	r.propose(bg, "first")
	time.Sleep(limit / 2)
	due = r.propose(bg, "due")
	before.apply()
	s = r.next()
	return s, due, start.Add(limit + stall)
}

func TestTheLimitIsOfTimeAlsoWhereStepsAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, due, goesOn := stalled(t)
		a := <-due
		want(t, a.err, outcome.Unknown, outcome.Deadline)
		if late := a.at.Sub(goesOn); late > afterPause {
			t.Errorf("answered %v after the process went on", late)
		}
	})
}

func TestAnAnswerThatCameDuringAPauseCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, due, goesOn := stalled(t)
		time.Sleep(time.Until(goesOn))
		s.apply()
		wantOK(t, <-due, "due")
	})
}

func TestCloseEndsWithTheLastOverdueCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newLeaderlessRig(t, expiring)
		start := time.Now()
		c := r.propose(bg, "x")
		r.g.Close(bg)
		if d := time.Since(start); d > limit+limit/expirySteps {
			t.Errorf("closed after %v", d)
		}
		a := <-c
		want(t, a.err, outcome.NotApplied, outcome.Deadline)
		wantAfter(t, a, start)
	})
}
