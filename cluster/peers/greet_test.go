package peers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
)

// TestAMemberThatNeverAnswersHoldsNoGreetingBack: elections after a start wait for
// greetings, and a heartbeat timeout is shorter than that of a dial.
func TestAMemberThatNeverAnswersHoldsNoGreetingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, accepted := time.Now(), time.Duration(0)
		ctx, cancel := context.WithCancel(t.Context())
		var gone atomic.Int32
		left := func() []raft.ServerID {
			switch {
			case accepted == 0:
				return []raft.ServerID{"gone", "late"}
			case gone.Load() < 3:
				return []raft.ServerID{"gone"}
			}
			cancel()
			return nil
		}
		waited := time.Duration(0)
		stopWaiting := func() { waited = time.Since(began) }
		greet(ctx, greetDuty(left, greetPauses, stopWaiting, func(id raft.ServerID, done func()) {
			if id == "gone" {
				time.AfterFunc(1500*time.Millisecond, func() { gone.Add(1); done() })
				return
			}
			if at := time.Since(began); at > 200*time.Millisecond {
				accepted = at
			}
			done()
		}))
		if accepted == 0 || accepted > 500*time.Millisecond {
			t.Errorf("a member that was up after 200 ms was greeted after %v", accepted)
		}
		if waited < 400*time.Millisecond || waited > 600*time.Millisecond {
			t.Errorf("elections waited for a member that does not answer for %v", waited)
		}
		if took := time.Since(began); took < 4500*time.Millisecond || took > 10*time.Second {
			t.Errorf("a member that does not answer was greeted 3 times within %v", took)
		}
	})
}

// greet does the duty until ctx ends.
func greet(ctx context.Context, d duty.Duty) {
	duty.New(slog.New(slog.DiscardHandler), duty.NewBeats(), d).Run(ctx, func() bool { return true }, nil)
}

// TestMembersAreGreetedAgain when there is a reason to, and elections wait for none of that.
func TestMembersAreGreetedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began, waits, greetings := time.Now(), 0, 0
		left := func() []raft.ServerID {
			if at := time.Since(began); at > 5*time.Second && at < 8*time.Second {
				return []raft.ServerID{"a"}
			}
			return nil
		}
		greet(ctx, greetDuty(left, greetPauses, func() { waits++ }, func(_ raft.ServerID, done func()) {
			greetings++
			done()
		}))
		if waits != 1 || greetings != 3 {
			t.Errorf("stopped waiting %d times, greeted %d times", waits, greetings)
		}
	})
}
