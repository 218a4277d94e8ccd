package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: few calls go on at a time, one of each caller, and a caller that comes later
// waits for one call of each that came before, however many those have waiting.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, each = 2 * mostTurns, 50
		turns := newTurns()
		begun := make(chan string, crowd*each+1)
		ends := make(chan func(), crowd*each+1)
		ask := func(caller string) {
			end, err := turns.wait(t.Context(), caller)
			if err != nil {
				t.Error(err)
			}
			begun <- caller
			ends <- end
		}
		for i := range crowd * each {
			go ask(fmt.Sprint(i % crowd))
			synctest.Wait()
		}
		if len(begun) != mostTurns {
			t.Errorf("%d go on", len(begun))
		}
		of := map[string]bool{}
		for range mostTurns {
			of[<-begun] = true
		}
		if len(of) != mostTurns {
			t.Errorf("only of %v", of)
		}
		go ask("late")
		synctest.Wait()
		before, came := 0, false
		for range crowd*each + 1 {
			(<-ends)()
			synctest.Wait()
			for len(begun) > 0 && !came {
				if came = <-begun == "late"; !came {
					before++
				}
			}
		}
		if !came || before > crowd {
			t.Errorf("%d calls came before that of a caller with one, of %d callers", before, crowd)
		}
		if len(turns.running) != 0 || len(turns.queues) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
}

// TestTurnsThatAreGivenUp leave no place taken, whether they waited for a call of their own caller or of others.
func TestTurnsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		var ends []func()
		for i := range mostTurns {
			end, err := turns.wait(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, caller := range []string{"0", "late"} {
			if _, err := turns.wait(ctx, caller); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call of %s: %v", caller, err)
			}
		}
		if len(turns.running) != mostTurns || len(turns.queues) != mostTurns {
			t.Errorf("left: %+v", turns)
		}
		for _, end := range ends {
			end()
		}
		if len(turns.running) != 0 || len(turns.queues) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
}
