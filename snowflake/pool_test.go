package snowflake_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/snowflake"
)

// layout has two workers, and a unit of 10 ms.
var layout = snowflake.Layout{Epoch: start.UnixMilli() - 1_000_000, Unit: 10, TimeBits: 45, WorkerBits: 1, SequenceBits: 8}

var start = time.UnixMilli(1_700_000_000_000)

func newPool(t testing.TB, l snowflake.Layout, window time.Duration) *snowflake.Pool {
	t.Helper()
	p, err := snowflake.NewPool(l, window, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(t time.Time) snowflake.Request { return snowflake.Request{Holder: t, Leader: t} }

// TestTheLifeOfALease goes through one pool of two workers.
func TestTheLifeOfALease(t *testing.T) {
	p, now := newPool(t, layout, time.Minute), start
	unit := func(after time.Duration) int64 { return layout.At(start.Add(after).UnixMilli()) }
	acquire := func(holder string, token uint64) string {
		l, err := p.Acquire(holder, token, at(now))
		return said(l, err, unit(0))
	}
	steps := []struct {
		at   time.Duration
		what string
		do   func() string
		want string
	}{
		{0, "the lowest", func() string { return acquire("a", 1) }, "0 [-100, 6000)"},
		{0, "the next one", func() string { return acquire("b", 2) }, "1 [-100, 6000)"},
		{time.Second, "none is left", func() string { return acquire("c", 3) }, "full until 6000"},
		{30 * time.Second, "a renewal", func() string { return said2(p.Renew(0, 1, at(now)))(unit(0)) }, "0 [-100, 9000)"},
		{30 * time.Second, "another's lease", func() string { return said2(p.Renew(0, 2, at(now)))(unit(0)) }, "passed 0"},
		{60 * time.Second, "a window that has passed", func() string { return said2(p.Renew(1, 2, at(now)))(unit(0)) }, "passed 1"},
		{60 * time.Second, "its worker is another's, behind it", func() string { return acquire("c", 4) }, "1 [6000, 12000)"},
		{61 * time.Second, "the rest is given back", func() string { return fmt.Sprint(p.Release(0, 1, unit(50*time.Second))) }, "<nil>"},
		{61 * time.Second, "once", func() string { return fmt.Sprint(p.Release(0, 1, unit(55*time.Second))) }, "<nil>"},
		{61 * time.Second, "it is another's behind the last id", func() string { return acquire("d", 5) }, "0 [6000, 12100)"},
		{200 * time.Second, "the worker that it had last", func() string { return acquire("c", 6) }, "1 [19900, 26000)"},
		{200 * time.Second, "a release of a lease before", func() string { return said(snowflake.Lease{}, p.Release(1, 4, 0), 0) }, "passed 1"},
	}
	for _, s := range steps {
		now = start.Add(s.at)
		if got := s.do(); got != s.want {
			t.Errorf("%s: %s, want %s", s.what, got, s.want)
		}
	}
}

func said2(l snowflake.Lease, err error) func(int64) string {
	return func(zero int64) string { return said(l, err, zero) }
}

// said shows a lease with times from zero on.
func said(l snowflake.Lease, err error, zero int64) string {
	if full := (*snowflake.FullError)(nil); errors.As(err, &full) {
		return fmt.Sprintf("full until %d", layout.At(full.Begins.UnixMilli())-zero)
	}
	if passed := (*snowflake.PassedError)(nil); errors.As(err, &passed) {
		return fmt.Sprintf("passed %d", passed.Worker)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d [%d, %d)", l.Worker, l.From-zero, l.Until-zero)
}

// TestClocksThatDifferAreRefused: neither clock decides alone, and nothing changes.
func TestClocksThatDifferAreRefused(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		ok    bool
	}{
		{0, true},
		{snowflake.MaxSkew, true},
		{-snowflake.MaxSkew, true},
		{snowflake.MaxSkew + 1, false},
		{-snowflake.MaxSkew - 1, false},
		{365 * 24 * time.Hour, false},
	} {
		p := newPool(t, layout, 0)
		before := p.Hash()
		r := snowflake.Request{Holder: start.Add(c.ahead), Leader: start}
		_, err := p.Acquire("a", 1, r)
		skew := (*snowflake.SkewError)(nil)
		if c.ok != (err == nil) || !c.ok && (!errors.As(err, &skew) || skew.Ahead != c.ahead || p.Hash() != before) {
			t.Errorf("%s ahead: %v", c.ahead, err)
		}
	}
}

// TestForgottenLeases: new windows begin behind all that could have been given, and none is given
// while that is far off: it could not be told from those after a second loss.
func TestForgottenLeases(t *testing.T) {
	p := newPool(t, layout, time.Minute)
	old, err := p.Acquire("a", 1, at(start))
	if err != nil {
		t.Fatal(err)
	}
	p.Forget(10 * time.Second) // The pool's own window is the longer one.
	if _, err := p.Renew(old.Worker, 1, at(start)); err == nil {
		t.Error("a forgotten lease was renewed")
	}
	begins := start.Add(time.Second + time.Minute + 3*snowflake.MaxSkew)
	for after, early := range map[time.Duration]bool{time.Second: true, 81 * time.Second: false} {
		l, err := again(t, p).Acquire("a", 2, at(start.Add(time.Second)))
		if full := (*snowflake.FullError)(nil); !errors.As(err, &full) || !full.Begins.Equal(begins) {
			t.Fatalf("%v, %v", l, err)
		}
		_, _ = p.Acquire("a", 2, at(start.Add(time.Second)))
		l, err = again(t, p).Acquire("a", 2, at(start.Add(after)))
		_, full := errors.AsType[*snowflake.FullError](err)
		if early != full || !early && (err != nil || l.From != layout.At(begins.UnixMilli())) {
			t.Errorf("after %s: %v, %v", after, l, err)
		}
	}
}

// TestWrongRequests: each is refused with its field.
func TestWrongRequests(t *testing.T) {
	p := newPool(t, layout, time.Minute)
	for _, c := range []struct {
		holder string
		want   time.Duration
		field  string
	}{
		{"", 0, "holder"},
		{strings.Repeat("x", snowflake.MaxHolderBytes+1), 0, "holder"},
		{"a", -1, "window"},
		{"a", time.Minute + 1, "window"},
		{"a", math.MaxInt64, "window"},
	} {
		_, err := p.Acquire(c.holder, 1, snowflake.Request{Want: c.want, Holder: start, Leader: start})
		if wrong := (*snowflake.InvalidError)(nil); !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%q, %s: %v, want the field %s", c.holder, c.want, err, c.field)
		}
	}
}

// TestAClockThatWasWrong: an hour ahead, it gives workers times that the others wait for. Until then
// the others have other workers, even if the holder gave its own back.
func TestAClockThatWasWrong(t *testing.T) {
	for _, free := range []bool{false, true} {
		p := newPool(t, layout, time.Minute)
		wrong, err := p.Acquire("a", 1, at(start.Add(time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		if free {
			_ = p.Release(wrong.Worker, 1, wrong.From+1)
		}
		l, err := p.Acquire("a", 2, at(start))
		if err != nil || l.Worker != 1 || l.From > layout.At(start.UnixMilli()) {
			t.Errorf("%v, %v", l, err)
		}
		_, err = p.Acquire("b", 3, at(start))
		if full := (*snowflake.FullError)(nil); !errors.As(err, &full) || full.Begins.Sub(start) > time.Hour {
			t.Error(err)
		}
	}
}

// TestWindowsEndSoon: whatever is given back and leased again, no window ends later than MaxSkew and a
// window's length after the leader's time. So what a recovery does not know has an end.
func TestWindowsEndSoon(t *testing.T) {
	p := newPool(t, layout, time.Minute)
	latest := layout.At(start.Add(time.Minute + snowflake.MaxSkew).UnixMilli())
	for n := range uint64(20) {
		l, err := p.Acquire("a", n, snowflake.Request{Leader: start, Holder: start.Add(snowflake.MaxSkew)})
		if full := (*snowflake.FullError)(nil); errors.As(err, &full) {
			return
		}
		if err != nil || l.Until > latest {
			t.Fatalf("%v, %v: behind %d", l, err, latest)
		}
		_ = p.Release(l.Worker, n, math.MaxInt64)
	}
	t.Error("the pool is never full")
}

// TestAHolderThatIsAhead has a whole window: it would acquire without an end otherwise.
func TestAHolderThatIsAhead(t *testing.T) {
	p := newPool(t, layout, snowflake.MinWindow)
	holder := start.Add(snowflake.MaxSkew)
	want := layout.At(holder.Add(snowflake.MinWindow).UnixMilli())
	r := snowflake.Request{Leader: start, Holder: holder}
	l, err := p.Acquire("a", 1, r)
	if err != nil || l.Until != want {
		t.Errorf("%v, %v; want until %d", l, err, want)
	}
	if l, err = p.Renew(l.Worker, 1, r); err != nil || l.Until != want {
		t.Errorf("%v, %v; want until %d", l, err, want)
	}
}

// TestTheLongerForgottenWindowCounts, of all that were forgotten until a holder calls, also in a snapshot.
func TestTheLongerForgottenWindowCounts(t *testing.T) {
	for _, order := range [][]time.Duration{{time.Hour, 0}, {0, time.Hour}, {time.Minute, time.Hour, time.Minute}} {
		p := newPool(t, layout, time.Minute)
		for _, window := range order {
			p.Forget(window)
		}
		_, err := again(t, p).Acquire("a", 1, at(start))
		full, begins := (*snowflake.FullError)(nil), start.Add(time.Hour+3*snowflake.MaxSkew)
		if !errors.As(err, &full) || !full.Begins.Equal(begins) {
			t.Errorf("%v: %v, want until %s", order, err, begins)
		}
	}
	most := layout.Units(snowflake.MaxWindow)
	for unknown, ok := range map[int64]bool{-1: false, 0: true, most: true, most + 1: false} {
		if _, err := snowflake.Restore(snowflake.Stored{Layout: layout, Window: 1000, Unknown: unknown}); ok != (err == nil) {
			t.Errorf("an unknown window of %d units: %v", unknown, err)
		}
	}
}

// TestWindowsAreDefinedAgain: what a pool says of its window defines it again, in any unit.
func TestWindowsAreDefinedAgain(t *testing.T) {
	for unit := int64(1); unit <= 1000; unit++ {
		for _, window := range []time.Duration{snowflake.MinWindow, time.Minute, snowflake.MaxWindow} {
			l := layout
			l.Unit = unit
			p := newPool(t, l, window)
			if q, err := snowflake.NewPool(l, p.Window(), true); err != nil || !q.Same(p) {
				t.Fatalf("%s in units of %d ms: %v", window, unit, err)
			}
		}
	}
	if _, err := snowflake.NewPool(layout, math.MaxInt64, false); err == nil {
		t.Error("a window of 292 years")
	}
}

// span is a window of a worker that somebody was told of.
type span struct {
	worker      int
	token       uint64
	from, until int64
}

// TestWindowsNeverOverlap draws calls under clocks that jump and differ. Whatever a holder was told,
// no time of a worker is another's, but for what was released.
func TestWindowsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := snowflake.NewPool(layout, rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute}).Draw(t, "window"), false)
		if err != nil {
			t.Fatal(err)
		}
		var told []span
		evicted := map[uint64]bool{}       // by token
		leader, twin := start, again(t, p) // A node that a snapshot brought up decides the same.
		for n := range rapid.IntRange(1, 80).Draw(t, "calls") {
			leader = leader.Add(time.Duration(rapid.IntRange(-30_000, 40_000).Draw(t, "ms later")) * time.Millisecond)
			r := snowflake.Request{
				Leader: leader, Holder: leader.Add(time.Duration(rapid.IntRange(-12_000, 12_000).Draw(t, "ms ahead")) * time.Millisecond),
				Want: time.Duration(rapid.IntRange(0, 10_000).Draw(t, "ms wanted")) * time.Millisecond,
			}
			token := uint64(n + 1)
			switch rapid.IntRange(0, 10).Draw(t, "call") {
			case 0, 1, 2, 3:
				holder := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "holder")
				l, err := p.Acquire(holder, token, r)
				l2, err2 := twin.Acquire(holder, token, r)
				if l != l2 || fmt.Sprint(err) != fmt.Sprint(err2) {
					t.Fatalf("%v, %v here; %v, %v after a snapshot", l, err, l2, err2)
				}
				if err == nil {
					told = append(told, span{l.Worker, token, l.From, l.Until})
				}
			case 4, 5, 6:
				if i := drawn(t, told); i >= 0 {
					l, err := p.Renew(told[i].worker, told[i].token, r)
					_, _ = twin.Renew(told[i].worker, told[i].token, r)
					if err == nil && evicted[told[i].token] {
						t.Fatalf("an evicted lease was renewed: %v", l)
					}
					if err == nil {
						told[i].until = l.Until
					}
				}
			case 7, 8:
				if i := drawn(t, told); i >= 0 {
					next := rapid.Int64Range(told[i].from, told[i].until).Draw(t, "next")
					// The holder makes no id from next on, even if it does not hear the answer.
					told[i].until = next
					_ = p.Release(told[i].worker, told[i].token, next)
					_ = twin.Release(told[i].worker, told[i].token, next)
				}
			case 9:
				if i := drawn(t, told); i >= 0 {
					_, err := p.Evict(told[i].worker, "", leader)
					_, _ = twin.Evict(told[i].worker, "", leader)
					if err == nil {
						evicted[newest(told, told[i].worker)] = true
					}
				}
			default:
				twin = again(t, p)
			}
			if p.Hash() != twin.Hash() {
				t.Fatal("the node that a snapshot brought up has another state")
			}
		}
		checkDisjoint(t, told)
	})
}

// newest returns the token of a worker's newest lease.
func newest(told []span, worker int) (token uint64) {
	for _, s := range told {
		if s.worker == worker {
			token = s.token
		}
	}
	return token
}

// drawn returns the place of some lease; -1 if there is none.
func drawn(t *rapid.T, told []span) int {
	if len(told) == 0 {
		return -1
	}
	return rapid.IntRange(0, len(told)-1).Draw(t, "lease")
}

type fataler interface{ Fatal(args ...any) }

// again returns the pool as a snapshot brings it back.
func again(t fataler, p *snowflake.Pool) *snowflake.Pool {
	f := p.Freeze()
	restored, err := snowflake.Restore(f.Stored)
	if err != nil {
		t.Fatal(err)
	}
	f.Leases(func(l snowflake.Lease) bool {
		if err := restored.Put(l); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if restored.Hash() != p.Hash() {
		t.Fatal("the hash of the restored pool differs")
	}
	return restored
}

func checkDisjoint(t *rapid.T, told []span) {
	slices.SortFunc(told, func(a, b span) int { return cmpSpans(a, b) })
	for i, s := range told[:max(len(told)-1, 0)] {
		if next := told[i+1]; s.worker == next.worker && s.until > next.from && next.until > next.from && s.until > s.from {
			t.Fatalf("worker %d has [%d, %d) and [%d, %d)", s.worker, s.from, s.until, next.from, next.until)
		}
	}
}

func cmpSpans(a, b span) int {
	if a.worker != b.worker {
		return a.worker - b.worker
	}
	if a.from != b.from {
		return int(a.from - b.from)
	}
	return int(a.until - b.until)
}
