package duty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/test/logbuffer"
)

// work does duties for a time, all from the beginning.
func work(t *testing.T, d time.Duration, all ...Duty) (told string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	established := make(chan struct{})
	close(established)
	log := new(logbuffer.Buffer)
	New(slog.New(slog.NewTextHandler(log, nil)), NewBeats(), all...).Run(ctx, func() bool { return true }, established)
	return log.String()
}

// takes is a task that takes a time, or until ctx ends.
func takes(d time.Duration, err error) Task {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counted is a duty that counts its checks, each of which finds the same task.
func counted(n *int, every time.Duration, found Task) Duty {
	return Duty{Every: every, Check: func(time.Time) Task {
		*n++
		return found
	}}
}

// TestADutyKeepsItsPeriod: also while the task of another runs. Its own task is followed by a
// pause.
func TestADutyKeepsItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow int
		work(t, 1050*time.Millisecond, counted(&slow, 50*time.Millisecond, takes(450*time.Millisecond, nil)),
			counted(&quick, 100*time.Millisecond, nil))
		if quick != 11 || slow != 3 {
			t.Errorf("%d checks of the quick duty and %d of the slow one, want 11 and 3", quick, slow)
		}
	})
}

// TestOneTransferAtATime: and none soon after one that failed, whichever duty tried it.
func TestOneTransferAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, begun, began := 0, []string{}, time.Now()
		transfer := func(name string) Duty {
			return Duty{
				Name: name, Every: 100 * time.Millisecond, Transfers: true, Failed: "it failed", Level: slog.LevelWarn,
				Check: func(time.Time) Task {
					return func(ctx context.Context) error {
						begun = append(begun, fmt.Sprintf("%s at %v", name, time.Since(began)))
						if running++; running > 1 {
							t.Errorf("two transfers at %v", time.Since(began))
						}
						defer func() { running-- }()
						return takes(250*time.Millisecond, errors.New("no answer"))(ctx)
					}
				},
			}
		}
		told := work(t, 2*time.Second, transfer("a"), transfer("b"))
		if got := strings.Join(begun, ", "); got != "a at 0s, a at 1.25s" {
			t.Errorf("they begin %s; want one at once, and one after the back-off", got)
		}
		if strings.Count(told, "it failed") != 1 || !strings.Contains(told, "duty=a") {
			t.Errorf("the log says %q, want an unchanged failure once", told)
		}
	})
}

// TestADutyIsWoken before its time, and not while its task runs.
func TestADutyIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks, wake := 0, make(chan struct{}, 1)
		d := counted(&checks, time.Minute, takes(time.Second, nil))
		d.Wake = wake
		wake <- struct{}{}
		work(t, 1500*time.Millisecond, d)
		if checks != 2 {
			t.Errorf("%d checks, want one at once, and the woken one", checks)
		}
	})
}

// TestDutiesBeforeLeadershipIsEstablished: all but the late ones. All end with the leadership, and
// wait for their tasks.
func TestDutiesBeforeLeadershipIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early, late int
		first, second := counted(&early, 100*time.Millisecond, nil), counted(&late, 100*time.Millisecond, takes(time.Hour, nil))
		second.Late = true
		established, done := make(chan struct{}), make(chan struct{})
		var leads atomic.Bool
		leads.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			New(slog.New(slog.DiscardHandler), NewBeats(), first, second).Run(ctx, leads.Load, established)
		}()
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if early != 3 || late != 0 {
			t.Errorf("%d checks of the early duty and %d of the late one, want 3 and 0", early, late)
		}
		close(established)
		synctest.Wait()
		if late != 1 {
			t.Errorf("%d checks of the late duty, want one at once", late)
		}
		leads.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if early != 3 {
			t.Errorf("%d checks of the early duty after the leadership, want 3", early)
		}
		select {
		case <-done:
			t.Error("the duties have ended before their task")
		default:
		}
		cancel()
		<-done
	})
}

// TestDutiesWakeTheProcessTogether: those of one period are checked at the same moments, also after
// tasks that end at others.
func TestDutiesWakeTheProcessTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moments, began := map[time.Duration]int{}, time.Now()
		lasting := func(d time.Duration) Duty {
			return Duty{Every: 200 * time.Millisecond, Check: func(now time.Time) Task {
				moments[now.Sub(began)]++
				return takes(d, nil)
			}}
		}
		work(t, 10*time.Second+time.Millisecond, lasting(2*time.Millisecond), lasting(7*time.Millisecond), lasting(11*time.Millisecond))
		for at, n := range moments {
			if n != 3 {
				t.Errorf("%d duties are checked at %v, want all three", n, at)
			}
		}
		if len(moments) != 51 {
			t.Errorf("checks at %d moments in ten seconds, want 51", len(moments))
		}
	})
}
