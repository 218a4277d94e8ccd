package commit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

// appended is one entry in the log. The test says the outcome of it.
type appended struct {
	entry raftlog.Entry
	done  chan Appended
}

// apply answers each operation with itself.
func (a appended) apply() {
	var results []raftlog.GroupResult
	for _, g := range a.entry.Groups {
		results = append(results, raftlog.GroupResult{Status: raftlog.Applied, Results: g.Operations})
	}
	a.complete(results, nil)
}

// complete tells the outcome, unless it was told.
func (a appended) complete(results []raftlog.GroupResult, err error) {
	select {
	case a.done <- Appended{results, err}:
	default:
	}
}

func (a appended) groups() []string {
	var names []string
	for _, g := range a.entry.Groups {
		names = append(names, string(g.Operations[0]))
	}
	return names
}

// manualLog hands each entry to the test.
type manualLog chan appended

func (l manualLog) Append(data []byte) <-chan Appended {
	entry, err := raftlog.DecodeEntry(data, raftlog.FormatVersion)
	a := appended{entry, make(chan Appended, 1)}
	if err != nil {
		a.complete(nil, err)
		return a.done
	}
	l <- a
	return a.done
}

// batcherRig is a Batcher with everything around it in a test's hands.
type batcherRig struct {
	t   *testing.T
	m   *Batcher
	log manualLog
	// headers and clocks count how often the Batcher asked.
	headers, clocks int
}

// newBatcherRig starts a Batcher that leads. It is made for a synctest bubble.
func newBatcherRig(t *testing.T, change func(*BatcherConfig)) *batcherRig {
	t.Helper()
	r := &batcherRig{t: t, log: make(manualLog, 64)}
	cfg := BatcherConfig{
		Log: r.log, Logger: discard, Events: untoldEntries,
		Header: func() (uint32, []byte) { r.headers++; return raftlog.FormatVersion, []byte("cluster") },
		Now:    func() time.Time { r.clocks++; return time.Unix(0, 42) },
	}
	if change != nil {
		change(&cfg)
	}
	m := NewBatcher(cfg)
	r.m = m
	m.Lead(context.Background())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		m.Close(ctx)
	})
	return r
}

// encoded returns a group with one operation.
func encoded(operation string) []byte {
	return raftlog.AppendGroup(nil, raftlog.Group{Origin: []byte("o"), Session: 1, Sequence: 1, Operations: [][]byte{[]byte(operation)}})
}

// submit calls Submit on a goroutine of its own.
func (r *batcherRig) submit(ctx context.Context, operation string) <-chan proposeResult {
	c := make(chan proposeResult, 1)
	go func() {
		result, err := r.m.Submit(ctx, encoded(operation))
		a := proposeResult{err: err, at: time.Now()}
		if len(result.Results) > 0 {
			a.result = string(result.Results[0])
		}
		c <- a
	}()
	synctest.Wait()
	return c
}

// next returns the next entry, which must be there now.
func (r *batcherRig) next() appended {
	r.t.Helper()
	synctest.Wait()
	select {
	case a := <-r.log:
		return a
	default:
		r.t.Fatal("no entry was appended")
		return appended{}
	}
}

func (r *batcherRig) none() {
	r.t.Helper()
	synctest.Wait()
	if len(r.log) > 0 {
		r.t.Fatalf("an entry of %v was appended", (<-r.log).groups())
	}
}

func TestGroupsThatWaitBecomeOneEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		first := r.submit(bg, "1")
		entry := r.next()
		var rest []<-chan proposeResult
		for _, name := range []string{"2", "3", "4"} {
			rest = append(rest, r.submit(bg, name))
		}
		r.none()
		entry.apply()
		wantOK(t, get(t, first), "1")
		entry = r.next()
		if diff := cmp.Diff([]string{"2", "3", "4"}, entry.groups()); diff != "" {
			t.Error(diff)
		}
		wantHeader := raftlog.Header{Format: raftlog.FormatVersion, ClusterID: []byte("cluster"), TimeUnixNano: 42}
		if diff := cmp.Diff(wantHeader, entry.entry.Header); diff != "" {
			t.Error(diff)
		}
		if r.headers != 2 || r.clocks != 2 {
			t.Errorf("asked for %d headers and the time %d times for 2 entries", r.headers, r.clocks)
		}
		entry.apply()
		for i, name := range []string{"2", "3", "4"} {
			wantOK(t, get(t, rest[i]), name)
		}
	})
}

func TestEntriesAreCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		size := len(encoded("x"))
		r := newBatcherRig(t, func(c *BatcherConfig) { c.MaxEntryBytes = 2*size + 1 })
		r.submit(bg, "1")
		one := r.next()
		for range 5 {
			r.submit(bg, "x")
		}
		r.none()
		one.apply()
		two := r.next()
		if n := len(two.groups()); n != 2 {
			t.Fatalf("the entry has %d groups", n)
		}
		two.apply()
		if n := len(r.next().groups()); n != 2 {
			t.Fatalf("the entry has %d groups", n)
		}
		_, err := r.m.Submit(bg, encoded("more than fits into an entry"))
		want(t, err, outcome.NotApplied, outcome.TooLarge)
	})
}

func TestADamagedGroupIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		_, err := r.m.Submit(bg, []byte{0xff})
		want(t, err, outcome.NotApplied, outcome.Invalid)
		r.none()
	})
}

func TestAFullBatcherRefusesAtOnce(t *testing.T) {
	tests := map[string]func(*BatcherConfig){
		"by groups": func(c *BatcherConfig) { c.QueueGroups = 2 },
		"by bytes": func(c *BatcherConfig) {
			c.MaxEntryBytes = len(encoded("x"))
			c.QueueBytes = 2 * len(encoded("x"))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newBatcherRig(t, change)
				r.submit(bg, "x")
				r.submit(bg, "x")
				r.submit(bg, "x")
				want(t, get(t, r.submit(bg, "x")).err, outcome.NotApplied, outcome.Overloaded)
			})
		})
	}
}

func TestTheEndOfALeadership(t *testing.T) {
	tests := []struct {
		name    string
		end     func(r *batcherRig, cancel context.CancelFunc, entry appended)
		outcome outcome.Outcome
		reason  outcome.Reason
		after   time.Duration
	}{
		{
			"stepped down, nothing heard", func(r *batcherRig, _ context.CancelFunc, _ appended) { r.m.StepDown() },
			outcome.Unknown, outcome.LeadershipLost, grace,
		},
		{
			"context ended, nothing heard", func(_ *batcherRig, cancel context.CancelFunc, _ appended) { cancel() },
			outcome.Unknown, outcome.LeadershipLost, grace,
		},
		{
			"applied all the same", func(r *batcherRig, _ context.CancelFunc, a appended) { r.m.StepDown(); a.apply() },
			outcome.Applied, outcome.Unspecified, 0,
		},
		{"refused by the log", func(r *batcherRig, _ context.CancelFunc, a appended) {
			r.m.StepDown()
			a.complete(nil, outcome.NewNotApplied(outcome.NotLeader, nil))
		}, outcome.NotApplied, outcome.NotLeader, 0},
		{"an error that says nothing", func(r *batcherRig, _ context.CancelFunc, a appended) {
			a.complete(nil, errLost)
			synctest.Wait()
			r.m.StepDown()
		}, outcome.Unknown, outcome.Unspecified, 0},
		{
			"another leadership begins", func(r *batcherRig, _ context.CancelFunc, _ appended) { r.m.Lead(bg) },
			outcome.Unknown, outcome.LeadershipLost, grace,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newBatcherRig(t, nil)
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				r.m.Lead(ctx)
				under := r.submit(bg, "x")
				entry := r.next()
				var waits <-chan proposeResult
				start := time.Now()
				if test.name != "an error that says nothing" {
					waits = r.submit(bg, "waits")
				}
				test.end(r, cancel, entry)
				synctest.Wait()
				if waits != nil {
					want(t, get(t, waits).err, outcome.NotApplied, outcome.NotLeader)
				}
				time.Sleep(test.after)
				a := get(t, under)
				if test.outcome == outcome.Applied {
					wantOK(t, a, "x")
				} else {
					want(t, a.err, test.outcome, test.reason)
				}
				if d := a.at.Sub(start); d != test.after {
					t.Errorf("answered after %v", d)
				}
			})
		})
	}
}

func TestABatcherThatDoesNotLeadRefusesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		r.m.StepDown()
		want(t, get(t, r.submit(bg, "x")).err, outcome.NotApplied, outcome.NotLeader)
		ended, cancel := context.WithCancel(bg)
		cancel()
		r.m.Lead(ended)
		want(t, get(t, r.submit(bg, "x")).err, outcome.NotApplied, outcome.NotLeader)
		r.m.Lead(bg)
		c := r.submit(bg, "x")
		r.next().apply()
		wantOK(t, get(t, c), "x")
	})
}

// TestGroupsAreHeldForANewLeader: they wait until it leads, and are refused if it does not.
func TestGroupsAreHeldForANewLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		r.m.StepDown()
		r.m.Hold(bg)
		first, second := r.submit(bg, "1"), r.submit(bg, "2")
		r.none()
		time.Sleep(HoldLimit - time.Millisecond)
		r.m.Lead(bg)
		r.next().apply()
		wantOK(t, get(t, first), "1")
		wantOK(t, get(t, second), "2")
		time.Sleep(HoldLimit)
		third := r.submit(bg, "3")
		r.next().apply()
		wantOK(t, get(t, third), "3")

		r.m.StepDown()
		r.m.Hold(bg)
		late := r.submit(bg, "4")
		time.Sleep(HoldLimit)
		want(t, get(t, late).err, outcome.NotApplied, outcome.NotLeader)
		want(t, get(t, r.submit(bg, "5")).err, outcome.NotApplied, outcome.NotLeader)
		r.m.Hold(bg)
		lost := r.submit(bg, "6")
		r.m.StepDown()
		want(t, get(t, lost).err, outcome.NotApplied, outcome.NotLeader)
	})
}

func TestAFutureThatIsNeverDoneIsNotWaitedForForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		c := r.submit(bg, "x")
		r.next()
		next := r.submit(bg, "next")
		time.Sleep(DefaultAnswerTimeout)
		want(t, get(t, c).err, outcome.Unknown, outcome.NoQuorum)
		r.next().apply()
		wantOK(t, get(t, next), "next")
	})
}

func TestASubmitterThatGoesAwayIsToldTheTruth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		ctx, cancel := context.WithCancel(bg)
		under := r.submit(ctx, "under way")
		entry := r.next()
		waits, stays := r.submit(ctx, "waits"), r.submit(bg, "stays")
		cancel()
		want(t, get(t, under).err, outcome.Unknown, outcome.Deadline)
		want(t, get(t, waits).err, outcome.NotApplied, outcome.Deadline)
		entry.apply()
		entry = r.next()
		if diff := cmp.Diff([]string{"stays"}, entry.groups()); diff != "" {
			t.Error(diff)
		}
		entry.apply()
		wantOK(t, get(t, stays), "stays")
	})
}

func TestResultsThatDoNotFitTheEntryAreUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		c := r.submit(bg, "x")
		r.next().complete(make([]raftlog.GroupResult, 2), nil)
		want(t, get(t, c).err, outcome.Unknown, outcome.Unspecified)
	})
}

func TestTheBatcherLingers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound = time.Millisecond
		r := newBatcherRig(t, func(c *BatcherConfig) { c.Linger = bound })
		r.submit(bg, "1")
		entry := r.next()
		r.submit(bg, "2")
		time.Sleep(bound)
		entry.apply()

		// The group that arrived meanwhile shares an entry with the next group of the answered caller.
		r.none()
		r.submit(bg, "3")
		entry = r.next()
		if diff := cmp.Diff([]string{"2", "3"}, entry.groups()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(bound)
		synctest.Wait() // The timer of the wait before, which ends now, would end the next one too.
		entry.apply()

		c := r.submit(bg, "6")
		r.none()
		time.Sleep(bound)
		r.next().apply()
		wantOK(t, get(t, c), "6")
		// There is no linger after an entry of one group.
		r.submit(bg, "7")
		r.next().apply()
	})
}

func TestClosingABatcher(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		under := r.submit(bg, "under way")
		entry := r.next()
		waits := r.submit(bg, "waits")
		closed := make(chan struct{})
		go func() {
			r.m.Close(bg)
			close(closed)
		}()
		synctest.Wait()
		want(t, get(t, r.submit(bg, "late")).err, outcome.NotApplied, outcome.Stopping)
		entry.apply()
		r.next().apply()
		wantOK(t, get(t, under), "under way")
		wantOK(t, get(t, waits), "waits")
		<-closed
		r.m.Lead(bg)
		want(t, get(t, r.submit(bg, "late")).err, outcome.NotApplied, outcome.Stopping)
	})
}

func TestClosingABatcherEndsEveryWaitInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newBatcherRig(t, nil)
		under := r.submit(bg, "under way")
		r.next()
		waits := r.submit(bg, "waits")
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		r.m.Close(ctx)
		want(t, get(t, under).err, outcome.Unknown, outcome.Stopping)
		want(t, get(t, waits).err, outcome.NotApplied, outcome.Stopping)
	})
}
