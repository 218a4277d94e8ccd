package etag_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/etag"
)

func TestOpenWritesNothing(t *testing.T) {
	d := &disk{state: etag.Stored{Clean: true, Databases: map[string]uint64{"a": 5}}}
	c := openOn(t, d, etag.Config{})
	if diff := cmp.Diff(map[string]uint64{"a": 5}, c.Last()); diff != "" {
		t.Errorf("Last (-want +got):\n%s", diff)
	}
	if d.writes != 0 {
		t.Errorf("%d writes before the first etag", d.writes)
	}
}

// The mark of a clean stop must be gone from the disk before the first etag is
// out, and every etag must be within what is durable.
func TestEveryEtagIsDurableBefore(t *testing.T) {
	d := &disk{state: etag.Stored{Clean: true, Databases: map[string]uint64{"a": 5}}}
	c := openOn(t, d, etag.Config{BlockSize: 4})
	for range 100 {
		v := next(t, c, "a")
		if state := d.read(); state.Clean || state.Databases["a"] < v {
			t.Fatalf("etag %d is out while the disk says %+v", v, state)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := openOn(t, &disk{}, etag.Config{MaxDatabases: func() int { return 2 }})
	next(t, c, "a")
	next(t, c, "b")
	for _, tc := range []struct {
		database string
		n        int
		want     error
	}{
		{"a", 0, etag.ErrCount},
		{"a", -1, etag.ErrCount},
		{"a", etag.MaxBlock + 1, etag.ErrCount},
		{"a", math.MinInt, etag.ErrCount},
		{"c", 1, etag.ErrTooManyDatabases},
		{"", 1, etag.ErrDatabase},
		{strings.Repeat("x", 129), 1, etag.ErrDatabase},
	} {
		if _, err := c.NextBlock(tc.database, tc.n); !errors.Is(err, tc.want) {
			t.Errorf("NextBlock(%q, %d): %v, want %v", tc.database, tc.n, err, tc.want)
		}
	}
	if diff := cmp.Diff(map[string]uint64{"a": 1, "b": 1}, c.Last()); diff != "" {
		t.Errorf("a refused call changed something (-want +got):\n%s", diff)
	}
}

func TestExhaustion(t *testing.T) {
	c := openOn(t, &disk{}, etag.Config{})
	c.Raise("a", etag.MaxEtag-10)
	if _, err := c.NextBlock("a", 11); !errors.Is(err, etag.ErrExhausted) {
		t.Fatalf("11 of the last 10: %v", err)
	}
	if first, err := c.NextBlock("a", 10); err != nil || first != etag.MaxEtag-9 {
		t.Fatalf("the last 10: %d, %v", first, err)
	}
	for range 3 {
		if _, err := c.Next("a"); !errors.Is(err, etag.ErrExhausted) {
			t.Fatalf("beyond the end: %v", err)
		}
	}
	if got := c.Reserved()["a"]; got != etag.MaxEtag {
		t.Errorf("reserved %d", got)
	}
	c.Raise("b", math.MaxUint64)
	if _, err := c.Next("b"); !errors.Is(err, etag.ErrExhausted) {
		t.Errorf("after a floor above the end: %v", err)
	}
}

func TestRaise(t *testing.T) {
	d := &disk{}
	c := openOn(t, d, etag.Config{BlockSize: 10, MaxDatabases: func() int { return 1 }})
	next(t, c, "a")
	for _, tc := range []struct {
		database string
		floor    uint64
		raised   bool
		next     uint64
	}{
		{"a", 0, false, 2},
		{"a", 2, false, 3},
		{"a", 5, true, 6},
		{"a", 1000, true, 1001},
		{"beyond the bound of databases", 7, true, 8},
	} {
		if got := c.Raise(tc.database, tc.floor); got != tc.raised {
			t.Errorf("Raise(%q, %d) = %t", tc.database, tc.floor, got)
		}
		if got := next(t, c, tc.database); got != tc.next {
			t.Errorf("after Raise(%q, %d): etag %d, want %d", tc.database, tc.floor, got, tc.next)
		}
	}
	if c.Raise("never used", 0) || len(c.Last()) != 2 {
		t.Error("a floor of 0 made a database")
	}
	c.Raise("a", 5000)
	closeCleanly(t, c)
	if c.Raise("a", 9000) {
		t.Error("raised after Close")
	}
	if got := d.read().Databases["a"]; got != 5000 {
		t.Errorf("a raise without use is stored as %d, want 5000", got)
	}
}

// Floors and the start number share durable writes, so that after Started the
// disk is where Raise promised.
func TestStartedMakesRaisesDurable(t *testing.T) {
	d := &disk{state: etag.Stored{Clean: true, Start: 3, Databases: map[string]uint64{"a": 5}}}
	c := openOn(t, d, etag.Config{BlockSize: 10})
	for _, name := range []string{"a", "b", "c"} {
		c.Raise(name, 1000)
	}
	if err := c.Started(4); err != nil {
		t.Fatal(err)
	}
	want := etag.Stored{Start: 4, Databases: map[string]uint64{"a": 1010, "b": 1010, "c": 1010}}
	if diff := cmp.Diff(want, d.read()); diff != "" {
		t.Fatalf("the disk (-want +got):\n%s", diff)
	}
	writes := d.writes
	if err := c.Started(2); err != nil || d.writes != writes {
		t.Errorf("an older start number: %v, %d writes", err, d.writes-writes)
	}
}

func TestAFailedWriteIsForEver(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept=%t", kept), func(t *testing.T) {
			d := &disk{}
			s := &fakeStore{disk: d}
			c := open(t, s, etag.Config{BlockSize: 10})
			next(t, c, "other")
			next(t, c, "a")
			s.disk.mu.Lock()
			s.beforeSync = func() (bool, error) { return kept, errDisk }
			s.disk.mu.Unlock()
			calls := s.calls
			last := uint64(1)
			for {
				v, err := c.Next("a")
				if err == nil {
					last = v
					continue
				}
				if !errors.Is(err, etag.ErrBroken) || !errors.Is(err, errDisk) {
					t.Fatalf("error %v", err)
				}
				break
			}
			<-c.Broken()
			if _, err := c.Next("other"); !errors.Is(err, etag.ErrBroken) {
				t.Errorf("another database goes on: %v", err)
			}
			if _, err := c.Next("new"); !errors.Is(err, etag.ErrBroken) {
				t.Errorf("a new database: %v", err)
			}
			if err := c.Started(9); !errors.Is(err, etag.ErrBroken) {
				t.Errorf("Started: %v", err)
			}
			if err := c.Close(); !errors.Is(err, etag.ErrBroken) {
				t.Errorf("Close: %v", err)
			}
			if _, err := c.Next("a"); !errors.Is(err, etag.ErrBroken) {
				t.Errorf("after Close: %v", err)
			}
			if s.calls != calls+1 || !s.closed || s.misused != "" {
				t.Errorf("%d writes after the failure, closed %t, %s", s.calls-calls-1, s.closed, s.misused)
			}
			if got := next(t, openOn(t, d, etag.Config{BlockSize: 10}), "a"); got <= last {
				t.Errorf("the next start gave %d after %d", got, last)
			}
		})
	}
}

func TestCloseWhoseWriteFails(t *testing.T) {
	d := &disk{}
	s := &fakeStore{disk: d}
	c := open(t, s, etag.Config{BlockSize: 10})
	next(t, c, "a")
	s.beforeSync = func() (bool, error) { return false, errDisk }
	for range 2 {
		if err := c.Close(); !errors.Is(err, etag.ErrBroken) {
			t.Errorf("Close: %v", err)
		}
	}
	if d.read().Clean || !s.closed {
		t.Errorf("clean %t, closed %t", d.read().Clean, s.closed)
	}
}

// A disk that stalls must not hold callers permanently, nor lose anything when it comes
// back.
func TestAStalledDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &fakeStore{disk: &disk{}, beforeSync: func() (bool, error) { <-release; return true, nil }}
		c := open(t, s, etag.Config{MaxWait: time.Second, CloseWait: 3 * time.Second})
		begin := time.Now()
		if _, err := c.Next("a"); !errors.Is(err, etag.ErrStalled) {
			t.Errorf("Next: %v", err)
		}
		if err := c.Started(1); !errors.Is(err, etag.ErrStalled) {
			t.Errorf("Started: %v", err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("two calls took %v", took)
		}
		waiting := make(chan error)
		go func() { _, err := c.Next("a"); waiting <- err }()
		synctest.Wait()
		if err := c.Close(); !errors.Is(err, etag.ErrStalled) {
			t.Errorf("Close: %v", err)
		}
		if err := <-waiting; !errors.Is(err, etag.ErrClosed) {
			t.Errorf("a call that waited while Close came: %v", err)
		}
		close(release)
		if err := c.Close(); err != nil {
			t.Errorf("Close after the disk came back: %v", err)
		}
		if state := s.disk.read(); !state.Clean || state.Databases["a"] != 0 {
			t.Errorf("the disk: %+v", state)
		}
	})
}

// Whoever waits is served by the write that is in progress or by the next, whatever others
// take beside it: so a call that is told of a slow disk has met one.
func TestAGreedyCallerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const write = 10 * time.Millisecond
		s := &fakeStore{disk: &disk{}, beforeSync: func() (bool, error) { time.Sleep(write); return true, nil }}
		c := open(t, s, etag.Config{BlockSize: 1000})
		defer closeCleanly(t, c)
		var wg sync.WaitGroup
		ended := make(chan struct{})
		take := func(n int) {
			for begin := time.Now(); ; begin = time.Now() {
				select {
				case <-ended:
					return
				default:
				}
				if _, err := c.NextBlock("a", n); err != nil {
					t.Errorf("a block of %d: %v", n, err)
					return
				}
				if took := time.Since(begin); took > 2*write {
					t.Errorf("a block of %d took %v, two writes take %v", n, took, 2*write)
				}
			}
		}
		for range 200 {
			wg.Go(func() { take(etag.MaxBlock) })
		}
		wg.Go(func() { take(600) })
		time.Sleep(time.Second)
		close(ended)
		wg.Wait()
	})
}

// Those that wait are served in their order; who has left, or asks for more than there is,
// holds up nobody.
func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{disk: &disk{}, beforeSync: func() (bool, error) { time.Sleep(90 * time.Second); return true, nil }}
		c := open(t, s, etag.Config{MaxWait: 100 * time.Second, CloseWait: time.Hour})
		defer closeCleanly(t, c)
		var wg sync.WaitGroup
		ask := func(database string, n int, first uint64, want error) {
			wg.Go(func() {
				if got, err := c.NextBlock(database, n); got != first || !errors.Is(err, want) {
					t.Errorf("%d of %s: %d, %v; want %d, %v", n, database, got, err, first, want)
				}
			})
			time.Sleep(time.Second)
		}
		const floor = etag.MaxEtag - 10
		c.Raise("near the end", floor)
		ask("near the end", 8, floor+1, nil)
		ask("near the end", 5, 0, etag.ErrExhausted)
		ask("near the end", 2, floor+9, nil)
		wg.Wait()

		c.Raise("left", 7)
		time.Sleep(time.Second) // The write of the floor has begun; the next one is for those that ask now.
		ask("left", 70_000, 0, etag.ErrStalled)
		ask("left", 3, 0, etag.ErrStalled)
		time.Sleep(95 * time.Second)
		ask("left", 4, 8, nil)
		wg.Wait()
	})
}

// The next block is on disk before the current one ends, so a steady caller
// does not meet the disk.
func TestTheNextBlockIsReservedInTheBackground(t *testing.T) {
	c := openOn(t, &disk{}, etag.Config{BlockSize: 100})
	next(t, c, "a")
	<-c.Reservations()
	if _, err := c.NextBlock("a", 60); err != nil {
		t.Fatal(err)
	}
	<-c.Reservations()
	if got := c.Reserved()["a"]; got != 200 {
		t.Errorf("reserved up to %d, want 200", got)
	}
}

func TestConcurrentCallersGetEachEtagOnce(t *testing.T) {
	const callers, each = 8, 20_000
	d := &disk{}
	c := openOn(t, d, etag.Config{BlockSize: 64})
	got := make([][]uint64, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				got[i] = append(got[i], next(t, c, "a"))
			}
		})
	}
	wg.Wait()
	for _, mine := range got {
		if !slices.IsSorted(mine) {
			t.Fatal("a caller's etags do not rise")
		}
	}
	all := slices.Concat(got...)
	slices.Sort(all)
	for i, v := range all {
		if v != uint64(i)+1 {
			t.Fatalf("etag %d at place %d", v, i)
		}
	}
}

// What Close writes is exactly the last etag any caller got.
func TestCloseUnderLoadIsExact(t *testing.T) {
	const callers = 4
	for range 50 {
		d := &disk{}
		c := openOn(t, d, etag.Config{BlockSize: 16})
		last := make([]uint64, callers)
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for errs[i] == nil {
					var v uint64
					if v, errs[i] = c.Next("a"); errs[i] == nil {
						last[i] = v
					}
				}
			})
		}
		eventually(t, "some etags", func() bool { return c.Last()["a"] > 100 })
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		closing.Wait()
		wg.Wait()
		for _, err := range errs {
			if !errors.Is(err, etag.ErrClosed) {
				t.Fatalf("a call during Close: %v", err)
			}
		}
		if stored := d.read().Databases["a"]; stored != slices.Max(last) || c.Last()["a"] != stored {
			t.Fatalf("stored %d, Last %d, handed out %d", stored, c.Last()["a"], slices.Max(last))
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	d := &disk{state: etag.Stored{Databases: map[string]uint64{"a": etag.MaxEtag + 1}}}
	if _, err := etag.Open(&fakeStore{disk: d}, etag.Config{}); !errors.Is(err, etag.ErrCorrupt) {
		t.Errorf("a value above the end: %v", err)
	}
}

func TestManyDatabasesShareOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const databases = 100
		d := &disk{}
		s := &fakeStore{disk: d, beforeSync: func() (bool, error) { time.Sleep(time.Millisecond); return true, nil }}
		c := open(t, s, etag.Config{})
		var wg sync.WaitGroup
		for i := range databases {
			wg.Go(func() { next(t, c, fmt.Sprint("db", i)) })
		}
		wg.Wait()
		if d.writes > 2 {
			t.Errorf("%d writes for %d databases", d.writes, databases)
		}
		closeCleanly(t, c)
	})
}
