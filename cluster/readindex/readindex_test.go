package readindex

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/internal/pause"
)

func TestLocalReadIndex(t *testing.T) {
	tests := []struct {
		name   string
		change func(r *fakeRaft)
		index  uint64
		reason outcome.Reason
	}{
		{"above the barrier", func(*fakeRaft) {}, 20, 0},
		{"at the barrier", func(r *fakeRaft) { r.commit = 10 }, 8, 0},
		{"below the barrier", func(r *fakeRaft) { r.commit = 9 }, 8, 0},
		{"not ready", func(r *fakeRaft) { r.notReady = true }, 0, outcome.NotLeader},
		{"ready in an older term", func(r *fakeRaft) { r.term = 4 }, 0, outcome.NotLeader},
		{"term changed during the check", func(r *fakeRaft) {
			r.verify = func(context.Context) error { r.change(func(r *fakeRaft) { r.term = 4 }); return nil }
		}, 0, outcome.NotLeader},
		{"committed during the check", func(r *fakeRaft) {
			r.verify = func(context.Context) error { r.change(func(r *fakeRaft) { r.commit = 30 }); return nil }
		}, 20, 0},
		{"no quorum", func(r *fakeRaft) { r.verify = func(context.Context) error { return errBroken } }, 0, outcome.NoQuorum},
		{"says why", func(r *fakeRaft) {
			r.verify = func(context.Context) error { return outcome.NewUnknown(outcome.Stopping, nil) }
		}, 0, outcome.Stopping},
		{"a check that hangs", func(r *fakeRaft) {
			r.verify = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, 0, outcome.NoQuorum},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				raft := newFakeRaft()
				test.change(raft)
				l := NewLocal(raft)
				defer l.Close()
				index, err := l.ReadIndex(bg)
				if test.reason != 0 {
					want(t, err, test.reason)
					return
				}
				if err != nil || index != test.index {
					t.Fatalf("got %d, %v, want %d", index, err, test.index)
				}
			})
		})
	}
}

func TestWhoComesDuringARoundWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raft, gate := newFakeRaft(), make(chan struct{})
		raft.verify = func(context.Context) error { <-gate; return nil }
		l := NewLocal(raft)
		defer l.Close()
		ask := func() (uint64, error) { return l.ReadIndex(bg) }
		first := async(ask)
		raft.change(func(r *fakeRaft) { r.commit = 21 }) // answered while the round is in flight
		var late []<-chan read
		for range 100 {
			late = append(late, async(ask))
		}
		gate <- struct{}{}
		if r := get(t, first); r.index != 20 || r.err != nil {
			t.Fatalf("got %+v", r)
		}
		gate <- struct{}{}
		for _, c := range late {
			if r := get(t, c); r.index != 21 || r.err != nil {
				t.Fatalf("got %+v", r)
			}
		}
		if n := raft.rounds(); n != 2 {
			t.Fatalf("%d quorum checks", n)
		}
	})
}

func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raft, gate := newFakeRaft(), make(chan struct{})
		raft.verify = func(context.Context) error { <-gate; return nil }
		l := NewLocal(raft)
		l.rounds.most = 2
		ctx, cancel := context.WithCancel(bg)
		ask := func() (uint64, error) { return l.ReadIndex(ctx) }
		first, second := async(ask), async(ask)
		want(t, get(t, async(ask)).err, outcome.Overloaded)
		cancel()
		want(t, get(t, first).err, outcome.Deadline)
		want(t, get(t, second).err, outcome.Deadline)
		want(t, get(t, async(ask)).err, outcome.Deadline)
		waits := async(func() (uint64, error) { return l.ReadIndex(bg) })
		go l.Close()
		synctest.Wait()
		want(t, get(t, async(func() (uint64, error) { return l.ReadIndex(bg) })).err, outcome.Stopping)
		gate <- struct{}{}
		want(t, get(t, waits).err, outcome.Stopping)
	})
}

func TestLinearizeOnTheLeaderWaitsForTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := async(func() (uint64, error) { return 0, r.reader.Linearize(bg) })
		select {
		case got := <-c:
			t.Fatalf("answered before the state was there: %v", got.err)
		default:
		}
		r.state.advance(20)
		if got := get(t, c); got.err != nil {
			t.Fatal(got.err)
		}

		r.raft.change(func(r *fakeRaft) { r.commit = 21 })
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		want(t, r.reader.Linearize(ctx), outcome.Deadline)
	})
}

// TestANodeCutOffAfterItWasToldTheIndexGivesUp: it does not catch up any more,
// so its reads end as if they had found no leader, whatever their deadlines.
func TestANodeCutOffAfterItWasToldTheIndexGivesUp(t *testing.T) {
	for _, answersAfter := range []time.Duration{0, time.Second, limit - lastBackoff} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(ctx context.Context, _ string) (uint64, error) {
				pause.For(ctx, answersAfter)
				return 20, nil
			})
			r.reader.roundTimeout = limit
			r.leaders.leader = "b"
			ctx, cancel := context.WithTimeout(bg, time.Minute)
			defer cancel()
			start := time.Now()
			want(t, r.reader.Linearize(ctx), outcome.NoQuorum)
			if took, most := time.Since(start), limit*5/4; took < limit || took > most {
				t.Fatalf("it took %v, want %v to %v", took, limit, most)
			}
		})
	}
}

func TestAFollowerAsksTheLeaderOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, gate := 0, make(chan struct{})
		r := newRig(t, func(_ context.Context, leader string) (uint64, error) {
			if leader != "b" {
				t.Errorf("asked %s", leader)
			}
			calls++
			<-gate
			return 42, nil
		})
		r.leaders.leader = "b"
		ask := func() (uint64, error) { return r.reader.ReadIndex(bg) }
		waiting := []<-chan read{async(ask)}
		for range 50 {
			waiting = append(waiting, async(ask))
		}
		gate <- struct{}{}
		gate <- struct{}{}
		for _, c := range waiting {
			if got := get(t, c); got.index != 42 || got.err != nil {
				t.Fatalf("got %+v", got)
			}
		}
		if calls != 2 || r.raft.rounds() != 0 {
			t.Fatalf("asked the leader %d times and the own quorum %d times", calls, r.raft.rounds())
		}
	})
}

func TestReadsRideOutAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := newRig(t, func(context.Context, string) (uint64, error) {
			if calls++; calls < 5 {
				return 0, outcome.NewNotApplied(outcome.NotLeader, nil)
			}
			return 42, nil
		})
		r.leaders.leader = "b"
		index, err := r.reader.ReadIndex(bg)
		if err != nil || index != 42 {
			t.Fatalf("got %d, %v", index, err)
		}
	})
}

func TestReadsFailInTimeAndSayWhy(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		reason outcome.Reason
	}{
		{"not the leader", outcome.NewNotApplied(outcome.NotLeader, nil), outcome.NoQuorum},
		{"broken", errBroken, outcome.NoQuorum},
		{"overloaded", outcome.NewNotApplied(outcome.Overloaded, nil), outcome.Overloaded},
		{"starting", outcome.NewNotApplied(outcome.Starting, nil), outcome.Starting},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(context.Context, string) (uint64, error) { return 0, test.err })
				r.leaders.leader = "b"
				c := async(func() (uint64, error) { return r.reader.ReadIndex(bg) })
				sleepPast(limit)
				want(t, get(t, c).err, test.reason)
			})
		})
	}
}

func TestWithoutALeaderReadsFailAsWritesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.leaders.leader, r.leaders.err = "", outcome.NewNotApplied(outcome.NoQuorum, nil)
		_, err := r.reader.ReadIndex(bg)
		want(t, err, outcome.NoQuorum)
		want(t, r.reader.Linearize(bg), outcome.NoQuorum)
	})
}

func TestClosingEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(ctx context.Context, _ string) (uint64, error) { <-ctx.Done(); return 0, ctx.Err() })
		r.leaders.leader = "b"
		ask := func() (uint64, error) { return r.reader.ReadIndex(bg) }
		first, second := async(ask), async(ask)
		r.reader.Close()
		r.reader.Close()
		if got := get(t, first); outcome.Of(got.err) != outcome.NotApplied {
			t.Fatalf("got %v", got.err)
		}
		want(t, get(t, second).err, outcome.Stopping)
		want(t, get(t, async(ask)).err, outcome.Stopping)
	})
}

// TestReadsSeeEveryWriteAnsweredBefore is linearizability itself: writers raise
// the commit index and then count their write as answered; whoever begins to
// read after that must get an index at least as high. Leaders change meanwhile.
func TestReadsSeeEveryWriteAnsweredBefore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		readers := rapid.IntRange(1, 20).Draw(rt, "readers")
		var found []string
		synctest.Test(t, func(t *testing.T) { found = playReads(t, seed, readers) })
		if len(found) > 0 {
			rt.Fatal(found[0])
		}
	})
}

func playReads(t *testing.T, seed uint64, readers int) (found []string) {
	random, lock := rand.New(rand.NewPCG(seed, 1)), sync.Mutex{}
	moment := func(most time.Duration) time.Duration {
		lock.Lock()
		defer lock.Unlock()
		return time.Duration(random.Int64N(int64(most)))
	}
	r := newRig(t, nil)
	r.raft.verify = func(ctx context.Context) error {
		time.Sleep(moment(10 * time.Millisecond))
		if moment(10) == 0 {
			return errBroken
		}
		return nil
	}
	r.state.advance(1 << 40)
	ctx, cancel := context.WithCancel(bg)
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(moment(5 * time.Millisecond))
			r.raft.change(func(f *fakeRaft) { f.commit++ })
			if moment(20) == 0 { // an election: the same node leads again
				r.raft.change(func(f *fakeRaft) { f.term++; f.notReady = true })
				time.Sleep(moment(20 * time.Millisecond))
				r.raft.change(func(f *fakeRaft) {
					f.commit += 2
					f.notReady, f.ready = false, Ready{Term: f.term, Barrier: f.commit, Applied: f.commit - 2}
				})
			}
		}
	})
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for range 20 {
				time.Sleep(moment(20 * time.Millisecond))
				// What the state machine saw of what was answered by now.
				before := visibleNow(r.raft)
				index, err := r.reader.ReadIndex(bg)
				if err == nil && index < before {
					lock.Lock()
					found = append(found, fmt.Sprintf("read %d after %d was answered", index, before))
					lock.Unlock()
				}
			}
		})
	}
	reading.Wait()
	cancel()
	all.Wait()
	return found
}

func visibleNow(f *fakeRaft) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return visible(f.commit, f.ready)
}

func BenchmarkReadIndex(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := NewLocal(newFakeRaft())
			defer l.Close()
			b.ReportAllocs()
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := l.ReadIndex(bg); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
