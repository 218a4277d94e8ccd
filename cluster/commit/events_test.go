package commit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEventsOfAGatherer: a group is told when it is cut, with how long its oldest
// operation has waited, and again when it is answered.
func TestEventsOfAGatherer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		r := newRig(t, func(c *Config) {
			c.Events.Cut = func(operations int, waited time.Duration) {
				told = append(told, fmt.Sprintf("%d cut after %v", operations, waited))
			}
			c.Events.Answered = func(operations, _, attempts int, took time.Duration) {
				told = append(told, fmt.Sprintf("%d answered after %v in %d", operations, took, attempts))
			}
		})
		first := r.propose(bg, "a")
		s := r.next()
		second := r.propose(bg, "b")
		time.Sleep(2 * time.Millisecond)
		third := r.propose(bg, "c")
		time.Sleep(time.Millisecond)
		s.apply()
		wantOK(t, get(t, first), "a")
		r.next().apply()
		wantOK(t, get(t, second), "b")
		wantOK(t, get(t, third), "c")
		fourth := r.propose(bg, "d")
		r.next().apply()
		wantOK(t, get(t, fourth), "d")
		synctest.Wait()
		if diff := cmp.Diff([]string{
			"1 cut after 0s", "1 answered after 3ms in 1",
			"2 cut after 3ms", "2 answered after 0s in 1",
			"1 cut after 0s", "1 answered after 0s in 1",
		}, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestEventsOfABatcher: an entry is told when it begins and when it ends, with all
// operations of its groups.
func TestEventsOfABatcher(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []string
		r := newBatcherRig(t, func(c *BatcherConfig) {
			c.Events = BatcherEvents{
				Appending: func() { told = append(told, "begins") },
				Appended: func(groups, operations, _ int, _ time.Duration, err error) {
					told = append(told, fmt.Sprintf("%d groups, %d operations, failed %v", groups, operations, err != nil))
				},
			}
		})
		a := r.submit(bg, "a")
		entry := r.next()
		b, c := r.submit(bg, "b"), r.submit(bg, "c")
		entry.apply()
		wantOK(t, get(t, a), "a")
		r.next().complete(nil, errLost)
		_, _ = get(t, b), get(t, c)
		synctest.Wait()
		if diff := cmp.Diff([]string{
			"begins", "1 groups, 1 operations, failed false",
			"begins", "2 groups, 2 operations, failed true",
		}, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// diary is what a StartSpan writes down: which callers' work became part of what.
type diary struct {
	mu    sync.Mutex
	lines []string
}

type diaryKey struct{}

func named(name string) context.Context { return context.WithValue(bg, diaryKey{}, name) }

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// startSpan returns a StartSpan whose spans have this name.
func (d *diary) startSpan(name string) StartSpan {
	return func(callers []context.Context, operations int) Span {
		var of []any
		for _, c := range callers {
			of = append(of, c.Value(diaryKey{}))
		}
		d.write("%s of %v with %d", name, of, operations)
		return diarySpan{d, name}
	}
}

type diarySpan struct {
	diary *diary
	name  string
}

func (d diarySpan) Onto(ctx context.Context) context.Context {
	return context.WithValue(ctx, diaryKey{}, d.name)
}

func (d diarySpan) End(err error) { d.diary.write("%s ended, failed %v", d.name, err != nil) }

// TestSpans: a group is followed from its callers to the sender, and an entry
// from its groups until it was applied, also if it fails.
func TestSpans(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		r := newRig(t, func(c *Config) { c.Events.StartSpan = d.startSpan("group") })
		first := r.propose(named("a"), "a")
		s := r.next()
		second, third := r.propose(named("b"), "b"), r.propose(named("c"), "c")
		synctest.Wait()
		s.apply()
		wantOK(t, get(t, first), "a")
		s = r.next()
		if got := s.ctx.Value(diaryKey{}); got != "group" {
			t.Errorf("the sender got the span %v", got)
		}
		s.apply()
		wantOK(t, get(t, second), "b")
		wantOK(t, get(t, third), "c")
		synctest.Wait()
		if diff := cmp.Diff([]string{
			"group of [a] with 1", "group ended, failed false", "group of [b c] with 2", "group ended, failed false",
		}, d.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	bubble(t, func(t *testing.T) {
		var d diary
		r := newBatcherRig(t, func(c *BatcherConfig) { c.Events.StartSpan = d.startSpan("entry") })
		a := r.submit(named("a"), "a")
		entry := r.next()
		b, c := r.submit(named("b"), "b"), r.submit(named("c"), "c")
		synctest.Wait()
		entry.apply()
		wantOK(t, get(t, a), "a")
		r.next().complete(nil, errLost)
		_, _ = get(t, b), get(t, c)
		synctest.Wait()
		if diff := cmp.Diff([]string{
			"entry of [a] with 1", "entry ended, failed false", "entry of [b c] with 2", "entry ended, failed true",
		}, d.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
