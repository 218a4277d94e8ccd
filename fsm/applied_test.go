package fsm

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSkipOnlyMovesForward(t *testing.T) {
	s := New(Config{})
	s.Skip(5)
	s.Skip(3)
	if s.AppliedIndex() != 5 {
		t.Fatalf("at %d", s.AppliedIndex())
	}
	if index, _ := s.Hash(); index != 5 {
		t.Fatalf("at %d", index)
	}
}

func TestWaitApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFormedLog(t)
		if err := l.state.WaitApplied(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		done := make(chan uint64, 3)
		for _, index := range []uint64{2, 3, 9} {
			go func() {
				if l.state.WaitApplied(t.Context(), index) == nil {
					done <- index
				}
			}()
		}
		synctest.Wait()
		l.do(opNext("users", 1))
		diff(t, uint64(2), <-done)
		l.state.Skip(3)
		diff(t, uint64(3), <-done)
		other := restoredAt(t, 9)
		if err := l.state.Restore(bytes.NewReader(other)); err != nil {
			t.Fatal(err)
		}
		diff(t, uint64(9), <-done)
	})
}

// restoredAt returns a snapshot of the tests' cluster at an index.
func restoredAt(t testing.TB, index uint64) []byte {
	l := newFormedLog(t)
	l.state.Skip(index)
	return snapshotOf(t, l.state)
}

func TestWaitAppliedGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.WaitApplied(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if len(s.applied.waiting) != 0 {
			t.Fatal("it is still waiting")
		}
	})
}
