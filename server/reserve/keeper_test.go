package reserve

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// each runs a test in virtual time, with a node that keeps ten minutes' worth.
func each(t *testing.T, do func(t *testing.T, w *world, n *node)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.newNode(10 * time.Minute)
		defer n.crash()
		do(t, w, n)
	})
}

func total(ranges []hilo.Range) (n int64) {
	for _, r := range ranges {
		n += r.Size()
	}
	return n
}

func TestOnlyATagInSteadyUseHasNumbers(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("once", 1, time.Hour)
		n.use("burst", 50, time.Second)
		if n.holds("once") || n.holds("burst") || w.max("once") != 32 || w.max("burst") != 1600 {
			t.Fatalf("a tag that is used now and then has numbers: %v", n.keeper.Left())
		}
		n.use("steady", 20, time.Minute)
		if !n.holds("steady") {
			t.Fatal("a steadily used tag has no numbers")
		}
	})
}

func TestTheNumbersLastAsLongAsIsAsked(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("users", 60, 30*time.Second) // 64 a minute
		max := w.max("users")
		n.cut(true)
		all := n.drain("users", 32)
		if got := total(all); got < 10*64 || got > 4*10*64 {
			t.Fatalf("%d numbers for ten minutes at 64 a minute", got)
		}
		if slices.ContainsFunc(all, func(r hilo.Range) bool { return r.High > max }) {
			t.Fatalf("numbers above Max %d, which do not count as issued: %v", max, all)
		}
	})
}

func TestWhatIsLeftIsTold(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("once", 1, time.Second)
		n.use("books", 3, time.Minute)
		n.use("users", 20, 15*time.Second)
		n.cut(true)
		n.drain("books", 32)
		before := *n.keeper.Total()
		n.keeper.Take("db", "users", 32)
		left, after := n.keeper.Left(), n.keeper.Total()
		slices.SortFunc(left, func(a, b Left) int { return strings.Compare(a.Tag, b.Tag) })
		if len(left) != 2 || left[0] != (Left{Database: "db", Tag: "books"}) || left[1].Tag != "users" || left[1].Numbers != after.Numbers {
			t.Fatalf("%+v", left)
		}
		// 128 numbers a minute are taken, and twice of what is needed was granted at the first sight.
		if want := time.Duration(left[1].Numbers) * time.Minute / 128; left[1].Lasts < want*4/5 || left[1].Lasts > want*5/4 {
			t.Errorf("%+v, about %s expected", left[1], want)
		}
		if *after != (Total{Tags: 2, Numbers: before.Numbers - 32, For: 10 * time.Minute}) {
			t.Errorf("%+v after %+v", after, before)
		}
	})
}

// TestWhatIsLeftOfACounterIsForCallers: a grant that is larger than that is refused.
func TestWhatIsLeftOfACounterIsForCallers(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		w.set("users", math.MaxInt64-4*32-9)
		n.use("users", 4, time.Minute)
		if n.holds("users") || w.max("users") != math.MaxInt64-9 {
			t.Fatalf("Max %d, in reserve: %+v", w.max("users"), n.keeper.Left())
		}
		if r := n.next("users", 9, 0); r.High != math.MaxInt64 {
			t.Fatalf("the last range is %+v", r)
		}
	})
}

func TestANodeThatIsTheOnlyMemberKeepsNone(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		w.alone = true
		n.use("users", 10, time.Minute)
		if n.holds("users") || w.max("users") != 320 {
			t.Fatal("a node alone has numbers in reserve")
		}
		if total := n.keeper.Total(); total.Tags != 0 || total.Lasts != total.For {
			t.Fatalf("a node alone should have numbers in reserve: %+v", total)
		}
	})
}

func TestAStopReturnsWhatIsNewest(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("users", 2, time.Minute) // It is granted after the second one.
		r, ok := n.keeper.Take("db", "users", 10)
		if !ok {
			t.Fatal("nothing in reserve")
		}
		n.keeper.Stop(context.Background())
		if w.max("users") != r.High {
			t.Fatalf("Max %d after the stop, %d is the last number given", w.max("users"), r.High)
		}
		if got, ok := n.keeper.Take("db", "users", 1); ok || n.holds("users") {
			t.Fatalf("%v after the stop", got)
		}
	})
}

func TestATagOutOfUseReturnsItsNumbers(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("users", 2, time.Minute)
		held := n.holds("users")
		time.Sleep(idleFor)
		synctest.Wait()
		if !held || n.holds("users") || w.max("users") != 64 {
			t.Fatalf("Max %d a day after the last use, want 64", w.max("users"))
		}
	})
}

// What a merge, a set counter or a caller's last_max says is taken is not given, also
// where Max is above it.
func TestNumbersThatSomethingElseTookAreDiscarded(t *testing.T) {
	for what, take := range map[string]func(w *world) int64{
		"merge":         func(w *world) int64 { w.merge("users", 100_000); return 100_000 },
		"merge within":  func(w *world) int64 { at := w.max("users") - 5; w.merge("users", at); return at },
		"set":           func(w *world) int64 { w.set("users", 100_000); return 100_000 },
		"set unchanged": func(w *world) int64 { w.set("users", w.max("users")); return w.max("users") },
		"last_max":      func(w *world) int64 { return w.next("users", 1, 100_000).Low },
		"floor": func(w *world) int64 {
			w.must(&raftlogv1.MergeCluster{Floor: 50_000}, "")
			return 50_000
		},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, w *world, n *node) {
				n.use("users", 3, time.Minute)
				if !n.holds("users") {
					t.Fatal("nothing in reserve")
				}
				taken := take(w)
				for _, r := range n.drain("users", 3) {
					if r.Low <= taken {
						t.Fatalf("%v is given, and the numbers up to %d are taken", r, taken)
					}
				}
			})
		})
	}
}

// TestAGrantIsDiscardedBeforeItsAnswer by what is applied right behind it.
func TestAGrantIsDiscardedBeforeItsAnswer(t *testing.T) {
	for what, take := range map[string]func(w *world) int64{
		"merge":   func(w *world) int64 { at := w.max("users") - 5; w.merge("users", at); return at },
		"restore": func(w *world) int64 { w.taken("", "", math.MaxInt64); return w.max("users") },
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, w *world, n *node) {
				var taken int64
				n.meanwhile = func() { taken, n.meanwhile = take(w), nil }
				n.use("users", 3, time.Minute)
				if taken == 0 {
					t.Fatal("nothing was granted")
				}
				for _, r := range n.drain("users", 3) {
					if r.Low <= taken {
						t.Fatalf("%v is given, and the numbers up to %d are taken", r, taken)
					}
				}
			})
		})
	}
}

func TestARestoreDiscardsEverything(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.use("users", 3, time.Minute)
		var snapshot bytes.Buffer
		frozen := w.state.Snapshot()
		if _, err := frozen.WriteTo(&snapshot); err != nil {
			t.Fatal(err)
		}
		frozen.Close()
		if err := w.state.Restore(&snapshot); err != nil {
			t.Fatal(err)
		}
		if n.holds("users") {
			t.Fatal("what happened in the entries that were not applied is not known")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !n.holds("users") {
			t.Fatal("there is no new grant")
		}
	})
}

func TestNothingIsGivenByANodeThatMayNot(t *testing.T) {
	for what, change := range map[string]func(n *node){
		"cut off for more than a day": func(n *node) { n.cut(true); time.Sleep(MaxAge + time.Second) },
		"in no good standing":         func(n *node) { n.removed = errors.New("removed") },
		"ended":                       func(n *node) { n.crash() },
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, w *world, n *node) {
				n.use("users", 3, time.Minute)
				if !n.holds("users") {
					t.Fatal("nothing in reserve")
				}
				change(n)
				if r, ok := n.keeper.Take("db", "users", 1); ok {
					t.Fatalf("%v", r)
				}
			})
		})
	}
}

// A grant whose answer is lost is a gap, and so is that of a process that ended.
func TestALostGrantIsAGap(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		n.lost = true
		n.use("users", 3, time.Minute)
		n.cut(true)
		if n.holds("users") || w.max("users") <= 96 {
			t.Fatalf("held: %t, Max %d", n.holds("users"), w.max("users"))
		}
	})
}

func TestAFloodOfTagsIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		for i := range 2 * MaxTags {
			n.keeper.Took("db", string(rune('a'+i%26))+time.Duration(i).String(), nil, hilo.Range{Low: 1, High: 1})
		}
		if len(n.keeper.tags) != MaxTags || n.keeper.recent.Len() != MaxTags {
			t.Fatalf("%d tags are known", len(n.keeper.tags))
		}
	})
}

// TestNoNumberComesTwice plays random histories of three nodes: callers that take ranges
// from the cluster and, whether it is in reach or not, from reserves, nodes that are cut
// off, crash, stop and start again, and numbers that are taken by other means. No number
// comes twice.
func TestNoNumberComesTwice(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 14))
			w := newWorld(t)
			nodes := make([]*node, 3)
			for i := range nodes {
				nodes[i] = w.newNode(20 * time.Second)
			}
			given := map[int64]bool{}
			give := func(r hilo.Range) {
				for n := r.Low; n <= r.High; n++ {
					if given[n] {
						t.Fatalf("seed %d: %d comes twice", seed, n)
					}
					given[n] = true
				}
			}
			for range 300 {
				at := random.IntN(len(nodes))
				n := nodes[at]
				switch what := random.IntN(100); {
				case what < 60:
					if n.QuorumMissing() == 0 {
						r := n.next("users", 1+random.Int64N(8), 0)
						n.keeper.Took("db", "users", nil, r)
						give(r)
					}
				case what < 85:
					if r, ok := n.keeper.Take("db", "users", 1+random.Int64N(20)); ok {
						give(r)
						n.keeper.Took("db", "users", nil, r)
					}
				case what < 90:
					n.cut(n.QuorumMissing() == 0)
				case what < 93:
					n.crash()
					nodes[at] = w.newNode(20 * time.Second)
				case what < 96:
					n.keeper.Stop(context.Background())
					nodes[at] = w.newNode(20 * time.Second)
				default:
					w.set("users", w.max("users")+random.Int64N(50))
				}
				time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
				synctest.Wait()
			}
			for _, n := range nodes {
				n.crash()
			}
		})
	}
}

// TestTheStateKnowsWhoseReserveAGrantIs, and in whose name it was asked for.
func TestTheStateKnowsWhoseReserveAGrantIs(t *testing.T) {
	each(t, func(t *testing.T, w *world, n *node) {
		principal := "CN=till"
		n.keeper.Took("db", "users", &principal, n.next("users", 32, 0))
		n.use("users", 100, 5*time.Second)
		n.keeper.Took("db", "users", &principal, n.next("users", 32, 0))
		n.drain("users", 1000)
		time.Sleep(time.Minute)
		synctest.Wait()
		counter, _ := w.state.HiLo("db", "users")
		newest := counter.Outstanding[len(counter.Outstanding)-1]
		h := fsm.HolderOf(newest)
		if !h.GetReserve() || h.GetNode() != "A" || h.GetPrincipal() != principal || h.GetLabel() != "" {
			t.Errorf("%v", h)
		}
	})
}
