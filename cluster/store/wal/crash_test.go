package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

// story is a log's life with everything that can happen to it: several
// segments, one of its own size, conflicts, compactions, a snapshot far ahead,
// and all of it deleted.
var story = []op{
	{logs: entries(1, 1, 1)},
	{logs: entries(2, 6, 1)},
	{logs: entries(7, 9, 1)},
	{lo: 6, hi: 9},
	{logs: entries(6, 10, 2)},
	{logs: entries(11, 40, 2)},
	{lo: 1, hi: 8},
	{logs: entries(41, 44, 2)},
	{lo: 38, hi: 44},
	{logs: entries(38, 50, 3)},
	{lo: 9, hi: 41},
	{lo: 42, hi: 50},
	{logs: entries(101, 103, 4)},
	{logs: entries(104, 112, 4)},
	{lo: 101, hi: 112},
	{logs: entries(113, 120, 5)},
	{lo: 1, hi: 115},
	{logs: entries(121, 121, 5)},
}

// play does the operations of the story until one fails with the fault, and returns the model
// before that one, and after it; both are the same when all went well. Work in the
// background that is late is done between two operations, or when it is needed.
func play(t *testing.T, l *Log, story []op, fault error, random *rand.Rand) (before, after model) {
	t.Helper()
	before = model{}
	for _, o := range story {
		for _, late := range []task{l.preparing, l.dropping} {
			if random.IntN(4) == 0 {
				late.wait()
			}
		}
		after = before.after(o)
		if err := o.do(l); err != nil {
			if !errors.Is(err, fault) {
				t.Fatalf("%v: %v", o, err)
			}
			return before, after
		}
		before = after
	}
	return before, before
}

func TestStoryAsTheModelHasIt(t *testing.T) {
	d := newDisk(t)
	l, m := mustOpen(t, d), model{}
	for _, o := range story {
		must(t, o.do(l))
		m = m.after(o)
		if err := m.differs(l); err != nil {
			t.Fatalf("after %v: %v", o, err)
		}
		if err := m.differs(mustOpen(t, d.clone())); err != nil {
			t.Fatalf("after %v and reopening: %v", o, err)
		}
	}
	if names, _ := d.Names(); len(names) > 3 {
		t.Errorf("segments were not removed: %v", names)
	}
}

// TestCrashBetweenAnyTwoCalls crashes at every call of the story that changes the
// disk, by a kill and by loss of power, and again at every call of the opening
// that follows. What is done in the background is done at once, or late.
func TestCrashBetweenAnyTwoCalls(t *testing.T) {
	tier.Long(t)
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) { crashEverywhere(t, late) })
	}
}

func crashEverywhere(t *testing.T, late bool) {
	cfg := testConfig()
	cfg.task = func() task { return &foreground{late: late} }
	random := rand.New(rand.NewPCG(1, 2))
	for calls := 0; ; calls++ {
		d := newDisk(t)
		cfg.Write = refusing()
		l, err := open(cfg, d)
		must(t, err)
		d.left, d.torn = calls, random.IntN(200)
		before, after := play(t, l, story, errCrash, random)
		finished := d.left != 0
		reopen(t, calls, d.clone(), before, after)
		for range 2 {
			lost := d.powerLoss(random)
			openUnreadable(t, calls, lost.clone(), before, after)
			reopen(t, calls, lost, before, after)
		}
		if finished {
			t.Logf("crashed at %d calls", calls)
			return
		}
	}
}

// drawStory returns appends and deletions in any order.
func drawStory(random *rand.Rand) (story []op) {
	first, last := uint64(1), uint64(0) // Of the log.
	upTo := func() uint64 { return first + random.Uint64N(last-first+1) }
	for term := range uint64(25) {
		switch kind := random.IntN(10); {
		case kind < 6 || last < first:
			if last < first && random.IntN(2) == 0 { // As behind an installed snapshot.
				first += random.Uint64N(50)
				last = first - 1
			}
			logs := entries(last+1, last+1+random.Uint64N(8)*(1+random.Uint64N(3)), term)
			story = append(story, op{logs: logs})
			last += uint64(len(logs))
		case kind < 7:
			lo := upTo()
			story = append(story, op{lo: lo, hi: last})
			last = lo - 1
		case kind < 9:
			hi := upTo()
			story = append(story, op{lo: first, hi: hi})
			first = hi + 1
		default:
			story = append(story, op{lo: first, hi: last})
			first = last + 1
		}
	}
	return story
}

// TestCrashesInRandomStories: what is done in the background comes in any order, and power
// is lost at any call.
func TestCrashesInRandomStories(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		d, cfg := newDisk(t), late()
		l, err := open(cfg, d)
		must(t, err)
		d.left, d.torn = random.IntN(150), random.IntN(200)
		before, after := play(t, l, drawStory(random), errCrash, random)
		losePower(t, fmt.Sprint("seed ", seed), d, random, before, after)
	}
}

// losePower opens the disk after several losses of power, and demands the log before an operation, or after it.
func losePower(t *testing.T, when string, d *memDisk, random *rand.Rand, before, after model) {
	t.Helper()
	for range 8 {
		l, err := open(testConfig(), d.powerLoss(random))
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if after.differs(l) != nil && before.differs(l) != nil {
			t.Fatalf("%s: %v", when, before.differs(l))
		}
	}
}

// reopen opens the disk after a crash, with a crash at each call of the opening,
// and demands that nothing is lost but the operation that was not acknowledged.
func reopen(t *testing.T, calls int, d *memDisk, before, after model) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, uint64(calls)))
	for left := 0; ; left++ {
		again := d.clone()
		again.left = left
		l, err := open(testConfig(), again)
		if errors.Is(err, errCrash) {
			next := again.clone()
			if left%2 == 0 {
				next = again.powerLoss(random)
			}
			checkAfterCrash(t, calls, mustOpen(t, next), before, after)
			continue
		}
		if err != nil {
			t.Fatalf("crash at call %d: %v", calls, err)
		}
		again.left = -1
		checkAfterCrash(t, calls, l, before, after)
		return
	}
}

// openUnreadable opens the disk where nothing of a draft but its beginning can be
// read: a draft that is part of the log keeps it from being opened, and no other.
func openUnreadable(t *testing.T, calls int, d *memDisk, before, after model) {
	t.Helper()
	listed, err := list(d)
	must(t, err)
	l, err := open(testConfig(), &unreadable{memDisk: d.clone(), failing: true, suffix: draftSuffix, from: headerBytes})
	if errors.Is(err, syscall.EIO) {
		if begun := mustOpen(t, d).newest().draft(); !slices.Contains(listed.drafts, begun) {
			t.Fatalf("crash at call %d: %s is not part of the log, and keeps it from being opened: %v", calls, listed.drafts, err)
		}
		return
	}
	must(t, err)
	if after.differs(l) != nil && before.differs(l) != nil {
		t.Fatalf("crash at call %d, with a draft that cannot be read: %v", calls, before.differs(l))
	}
}

func checkAfterCrash(t *testing.T, calls int, l *Log, before, after model) {
	t.Helper()
	m := after
	if m.differs(l) != nil {
		m = before
	}
	if err := m.differs(l); err != nil {
		t.Fatalf("crash at call %d: %v", calls, err)
	}
	// It must be as good as any other log, also for the next loss of power. The second append begins
	// a segment in what the crash left of it.
	for _, more := range []uint64{3, 12} {
		_, last := m.ends()
		o := op{logs: entries(last+1, last+more, 9)}
		must(t, o.do(l))
		m = m.after(o)
	}
	lost := l.disk.(*memDisk).powerLoss(rand.New(rand.NewPCG(5, 6)))
	if err := m.differs(mustOpen(t, lost)); err != nil {
		t.Fatalf("crash at call %d, after one more append and a loss of power: %v", calls, err)
	}
}

// TestTornAtEveryByte has every possible beginning of a write arrive.
func TestTornAtEveryByte(t *testing.T) {
	for torn := 0; ; torn++ {
		d := newDisk(t)
		l := mustOpen(t, d)
		before := model{}.after(op{logs: entries(1, 4, 1)})
		must(t, l.StoreLogs(entries(1, 4, 1)))
		d.left, d.torn = 0, torn
		o := op{logs: entries(5, 6, 1)}
		if err := o.do(l); !errors.Is(err, errCrash) {
			t.Fatalf("the write: %v", err)
		}
		want := before
		whole := torn >= len(l.buf)
		if whole {
			want = before.after(o)
		}
		if err := want.differs(mustOpen(t, d.clone())); err != nil {
			t.Fatalf("%d bytes arrived: %v", torn, err)
		}
		checkAfterCrash(t, torn, mustOpen(t, d.clone()), want, want)
		if whole {
			return
		}
	}
}

// TestFailedSyncIsNotForgotten: after a sync has failed the pages look clean, and
// another sync, by the next process, says nothing of them.
func TestFailedSyncIsNotForgotten(t *testing.T) {
	d := newDisk(t)
	l := mustOpen(t, d)
	must(t, l.StoreLogs(entries(1, 4, 1)))
	broken := errors.New("input/output error")
	d.failSync = broken
	if err := l.StoreLogs(entries(5, 6, 1)); !errors.Is(err, broken) {
		t.Fatalf("the append: %v", err)
	}
	if err := l.StoreLogs(entries(5, 6, 1)); !errors.Is(err, broken) {
		t.Fatalf("an append after the failed one: %v", err)
	}
	next := d.clone()
	m := model{}.after(op{logs: entries(1, 6, 1)})
	if err := m.differs(mustOpen(t, next)); err != nil {
		t.Fatal(err)
	}
	if err := m.differs(mustOpen(t, next.powerLoss(rand.New(rand.NewPCG(1, 2))))); err != nil {
		t.Errorf("what the log had when it was opened is lost: %v", err)
	}
}

// TestAFailedSyncOfNamesIsNotForgotten: each sync of the story's fails once. The log ends its changes
// or does without those names, which no further sync makes durable.
func TestAFailedSyncOfNamesIsNotForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	for syncs := 1; ; syncs++ {
		d := newDisk(t)
		l := mustOpen(t, d)
		d.failNames = syncs
		before, after := play(t, l, story, syscall.EIO, random)
		losePower(t, fmt.Sprint("sync ", syncs), d, random, before, after)
		if d.failNames > 0 {
			t.Logf("%d syncs failed", syncs-1)
			return
		}
	}
}
