package fsm

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/test/cputime"
	"github.com/idnode/idnode/test/tier"
)

// growth is a kind of things of which there can be many, and the operations measured with them.
type growth struct {
	// prepare is applied first.
	prepare [][]byte
	// make returns the operation that makes the i-th one of n.
	make func(i, n int) []byte
	// before, if set, is applied where there are n, at a later time.
	before func(n int) [][]byte
	// steps are operations, each in an entry of its own. Those of one step are on one thing; i is
	// another one each time.
	steps map[string]func(i, n int) [][]byte
	// looked is how many more things than a few each step looks at.
	looked int
}

// one is a step of one operation.
func one(operation []byte) [][]byte { return [][]byte{operation} }

func define(name string, version int64, d series.Definition) []byte {
	return onSeries(&raftlogv1.SeriesDefine{Name: name, Definition: series.DefinitionMessage(d), ExpectedVersion: version})
}

func take(name string, values []string, keys ...string) []byte {
	return onSeries(&raftlogv1.SeriesTake{Name: name, Values: values, Keys: keys})
}

func end(name string, state series.NumberState, keys ...string) []byte {
	m := &raftlogv1.SeriesEnd{Name: name, State: uint32(state)}
	if state == series.Voided {
		m.Reason = "torn"
	}
	for _, k := range keys {
		m.Keys = append(m.Keys, &raftlogv1.SeriesKey{Key: k})
	}
	return onSeries(m)
}

func poolOf(name string) []byte {
	return onSeries(&raftlogv1.PoolDefine{
		Name: name, Layout: op.PoolLayout(transcriptLayout), WindowNanos: int64(time.Minute),
	})
}

func acquire(pool string, token uint64) []byte {
	return onSeries(&raftlogv1.WorkerAcquire{Pool: pool, Holder: fmt.Sprint(token), Token: token, HolderUnixNano: testTime.UnixNano()})
}

func inDatabaseOf(database string, o *raftlogv1.Operation) []byte {
	o.Database = database
	return encodeOperation(o)
}

// growKey is a request id of many.
func growKey(i int) *raftlogv1.RequestKey {
	k := key(i, 1)
	k.Key[15] = byte(i >> 24)
	return k
}

func keyedBy(principal string, i int) []byte {
	o := keyed(opNext("of all", 1), growKey(i))
	o.Principal = proto.String(principal)
	return encodeOperation(o)
}

// many is the series of which there is one with many parts.
const many = "invoices"

var (
	plain   = series.Definition{Format: "{number}"}
	lasting = series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses, OnExpiry: series.ExpiryReuses, ExpiresIn: time.Hour}
	voiding = series.Definition{Format: "{number}", OnExpiry: series.ExpiryVoids, ExpiresIn: time.Hour}
	scoped  = series.Definition{Format: "{branch}-{number}"}
)

// branch is the value of a scope.
func branch(i int) []string { return []string{fmt.Sprintf("B%07d", i)} }

// importNewer imports the first number as one that is newer each time.
func importNewer(i int) []byte {
	at := testTime.Add(time.Hour).UnixNano() + int64(i)
	return onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
		Name: many, First: 1, Origin: &raftlogv1.SeriesOrigin{SinceUnixNano: testTime.UnixNano(), Version: 1},
		Numbers: []*raftlogv1.SeriesStored{{State: uint32(series.Unknown), Shared: true, TakenUnixNano: at}},
	}}})
}

// ofNumbers are steps on a series with many numbers.
func ofNumbers(i, _ int) map[string][][]byte {
	fresh, old := fmt.Sprint("fresh", i), benchName(i)
	return map[string][][]byte{
		"take": one(take(many, nil, fresh)), "take again": one(take(many, nil, old)),
		"confirm": one(end(many, series.Confirmed, old)), "void": one(end(many, series.Voided, benchName(i+400))),
	}
}

var growths = map[string]growth{
	"identities": {
		make: func(i, n int) []byte { return encodeOperation(opNext(shuffledName(i, n), 1)) },
		steps: map[string]func(i, n int) [][]byte{
			"next":        func(i, n int) [][]byte { return one(encodeOperation(opNext(shuffledName(i, n), 1))) },
			"next of new": func(i, _ int) [][]byte { return one(encodeOperation(opNext(fmt.Sprint("new", i), 1))) },
			"seed": func(i, n int) [][]byte {
				return one(encodeOperation(opSeed(shuffledName(i, n), 1<<30+int64(i), false, nil)))
			},
			"delete": func(i, n int) [][]byte { return one(encodeOperation(opDelete(shuffledName(i, n), i%2 == 0))) },
			"merge": func(i, n int) [][]byte {
				return one(encodeOperation(opMergeOf(mergeIdentity(shuffledName(i, n), 1<<30+int64(i), false))))
			},
		},
	},
	"HiLo tags": {
		make: func(i, n int) []byte { return encodeOperation(opHiLo(sizedRange(i, n, ""))) },
		steps: map[string]func(i, n int) [][]byte{
			"next": func(i, n int) [][]byte { return one(encodeOperation(opHiLo(sizedRange(i, n, "")))) },
			"return": func(i, n int) [][]byte {
				return one(encodeOperation(opReturn(&raftlogv1.HiLoReturn{Tag: shuffledName(i, n), Low: 1, High: 32, Last: 5})))
			},
			"set": func(i, n int) [][]byte {
				return one(encodeOperation(opHiLoSetTo(shuffledName(i, n), 1<<30+int64(i), -1)))
			},
			"merge": func(i, n int) [][]byte {
				return one(encodeOperation(opMergeOf(mergeHiLo(shuffledName(i, n), 1<<30+int64(i), 0))))
			},
		},
	},
	"claims": {
		make: func(i, n int) []byte { return encodeOperation(opClaimID(shuffledName(i, n))) },
		steps: map[string]func(i, n int) [][]byte{
			"claim":   func(i, _ int) [][]byte { return one(encodeOperation(opClaimID(fmt.Sprint("new", i)))) },
			"release": func(i, n int) [][]byte { return one(encodeOperation(opReleaseID(shuffledName(i, n)))) },
		},
	},
	"databases": {
		prepare: [][]byte{encodeOperation(opSet("max-databases", 1_000_000))},
		make:    func(i, n int) []byte { return inDatabaseOf(shuffledName(i, n), opNext("users", 1)) },
		steps: map[string]func(i, n int) [][]byte{
			"next":        func(i, n int) [][]byte { return one(inDatabaseOf(shuffledName(i, n), opNext("users", 1))) },
			"next in new": func(i, _ int) [][]byte { return one(inDatabaseOf(fmt.Sprint("new", i), opNext("users", 1))) },
			"forget":      func(i, n int) [][]byte { return one(inDatabaseOf(shuffledName(i, n), opDelete("users", true))) },
			"delete": func(i, n int) [][]byte {
				return one(encodeIn(op.Envelope{Database: shuffledName(i, n)}, &raftlogv1.DatabaseDelete{}))
			},
		},
	},
	"etags of databases": {
		prepare: [][]byte{encodeOperation(opSet("max-databases", 1_000_000)), announceOperation(testMember("A"))},
		make: func(i, n int) []byte {
			return encodeOperation(opRaiseEtags("A", map[string]uint64{shuffledName(i, n): 100}))
		},
		steps: map[string]func(i, n int) [][]byte{
			"raise": func(i, n int) [][]byte {
				return one(encodeOperation(opRaiseEtags("A", map[string]uint64{shuffledName(i, n): 200 + uint64(i)})))
			},
			"clean stop": func(i, n int) [][]byte {
				return one(encodeOperation(opCleanStop("A", 1, map[string]uint64{shuffledName(i, n): 200 + uint64(i)})))
			},
			"start of another": func(int, int) [][]byte { return one(announceOperation(testMember("B"))) },
			"merge of a shared tag": func(i, n int) [][]byte {
				return one(encodeOperation(opMergeClusterOf(&raftlogv1.MergeCluster{ShareTags: true, Tags: []*raftlogv1.GivenTag{
					{Tag: "A", Id: nodeNamed("old A"), Etags: []*raftlogv1.EtagCeiling{{Database: shuffledName(i, n), Floor: uint64(i)}}},
				}})))
			},
		},
	},
	"request ids": {
		make: func(i, _ int) []byte { return keyedBy("dns:one", i) },
		steps: map[string]func(i, n int) [][]byte{
			"next":  func(i, n int) [][]byte { return one(keyedBy("dns:one", n+i)) },
			"again": func(i, n int) [][]byte { return one(keyedBy("dns:one", n-1-i)) },
		},
	},
	"callers with request ids": {
		make:   func(i, _ int) []byte { return keyedBy(benchName(i), i) },
		before: func(n int) [][]byte { return [][]byte{encodeOperation(opSet("request-window", int64(n)))} }, // It is full.
		steps: map[string]func(i, n int) [][]byte{
			"next":           func(i, n int) [][]byte { return one(keyedBy(shuffledName(i, n), n+i)) },
			"next of others": func(i, n int) [][]byte { return one(keyedBy(fmt.Sprint("new", i), n+i)) },
		},
	},
	"series": {
		make: func(i, n int) []byte { return define(shuffledName(i, n), 0, plain) },
		steps: map[string]func(i, n int) [][]byte{
			"define and delete": func(i, _ int) [][]byte {
				name := fmt.Sprint("new", i)
				return [][]byte{define(name, 0, plain), onSeries(&raftlogv1.SeriesDelete{Name: name, ExpectedVersion: 1})}
			},
			"take": func(i, n int) [][]byte { return one(take(shuffledName(i, n), nil, "a")) },
		},
	},
	"numbers": {
		prepare: [][]byte{define(many, 0, plain)},
		make:    func(i, _ int) []byte { return take(many, nil, benchName(i)) },
		steps: map[string]func(i, n int) [][]byte{
			"take":       func(i, n int) [][]byte { return ofNumbers(i, n)["take"] },
			"take again": func(i, n int) [][]byte { return ofNumbers(i, n)["take again"] },
			"confirm":    func(i, n int) [][]byte { return ofNumbers(i, n)["confirm"] },
			"void":       func(i, n int) [][]byte { return ofNumbers(i, n)["void"] },
			"delete, which is refused": func(int, int) [][]byte {
				return one(onSeries(&raftlogv1.SeriesDelete{Name: many, ExpectedVersion: 7}))
			},
		},
	},
	"numbers that end": {
		prepare: [][]byte{define(many, 0, lasting)},
		make:    func(i, _ int) []byte { return take(many, nil, benchName(i)) },
		steps: map[string]func(i, n int) [][]byte{
			"take":    func(i, n int) [][]byte { return ofNumbers(i, n)["take"] },
			"confirm": func(i, n int) [][]byte { return ofNumbers(i, n)["confirm"] },
			"release and take": func(i, _ int) [][]byte {
				return [][]byte{end(many, series.Released, benchName(i+400)), take(many, nil, fmt.Sprint("next", i))}
			},
		},
	},
	"numbers that have ended": {
		prepare: [][]byte{define(many, 0, lasting)},
		make:    func(i, _ int) []byte { return take(many, nil, benchName(i)) },
		before:  func(int) [][]byte { return nil },
		steps:   map[string]func(i, n int) [][]byte{"take": func(i, n int) [][]byte { return ofNumbers(i, n)["take"] }},
	},
	"numbers that are forgotten": {
		prepare: [][]byte{define(many, 0, plain)},
		make:    func(i, _ int) []byte { return take(many, nil, benchName(i)) },
		steps: map[string]func(i, n int) [][]byte{"import, resume and take": func(i, _ int) [][]byte {
			keys := make([]string, series.MaxKeys) // As many as one import forgets.
			for k := range keys {
				keys[k] = fmt.Sprint("again", i, "-", k)
			}
			return [][]byte{importNewer(i), onSeries(&raftlogv1.SeriesResume{Name: many}), take(many, nil, keys...)}
		}},
		looked: 2 * series.MaxKeys,
	},
	"numbers that are voided": {
		prepare: [][]byte{define(many, 0, voiding)},
		make:    func(i, _ int) []byte { return take(many, nil, benchName(i)) },
		before:  func(int) [][]byte { return nil },
		steps:   map[string]func(i, n int) [][]byte{"take": func(i, n int) [][]byte { return ofNumbers(i, n)["take"] }},
	},
	"scopes": {
		prepare: [][]byte{define(many, 0, scoped)},
		make:    func(i, _ int) []byte { return take(many, branch(i), benchName(i)) },
		steps: map[string]func(i, n int) [][]byte{
			"take": func(i, _ int) [][]byte { return one(take(many, branch(i), fmt.Sprint("fresh", i))) },
			"take in new": func(i, _ int) [][]byte {
				return one(take(many, []string{fmt.Sprintf("N%07d", i)}, fmt.Sprint("new", i)))
			},
			"allot": func(i, _ int) [][]byte {
				return one(onSeries(&raftlogv1.SeriesAllot{
					Name: many, Scope: branch(i), Allotment: &raftlogv1.SeriesAllotment{From: 1 << 20, To: 1 << 21},
				}))
			},
			"close": func(i, _ int) [][]byte {
				return one(onSeries(&raftlogv1.SeriesCloseScope{Name: many, Scope: branch(i)}))
			},
			"confirm":        func(i, _ int) [][]byte { return one(end(many, series.Confirmed, benchName(i))) },
			"define, resume": func(i, _ int) [][]byte { return one(onSeries(&raftlogv1.SeriesResume{Name: many})) },
		},
	},
	"pools": {
		make: func(i, n int) []byte { return poolOf(shuffledName(i, n)) },
		steps: map[string]func(i, n int) [][]byte{
			"define": func(i, _ int) [][]byte { return one(poolOf(fmt.Sprint("new", i))) },
			"evict": func(i, n int) [][]byte {
				return [][]byte{acquire(shuffledName(i+400, n), 1), onSeries(&raftlogv1.WorkerEvict{Pool: shuffledName(i+400, n)})}
			},
			"acquire, renew and release": func(i, n int) [][]byte {
				token, at := uint64(i)+1, testTime.UnixNano()
				return [][]byte{
					acquire(shuffledName(i, n), token),
					onSeries(&raftlogv1.WorkerRenew{Pool: shuffledName(i, n), Token: token, HolderUnixNano: at}),
					onSeries(&raftlogv1.WorkerRelease{Pool: shuffledName(i, n), Token: token}),
				}
			},
		},
	},
}

// grown returns a log with n of something.
func grown(t testing.TB, g growth, n int) *testLog {
	t.Helper()
	l := newFormedLog(t)
	for _, o := range g.prepare {
		l.mustApplied(l.raw(o))
	}
	l.fillEncoded(n, func(i int) []byte { return g.make(i, n) })
	if g.before != nil {
		l.now = l.now.Add(48 * time.Hour)
		for _, o := range g.before(n) {
			l.mustApplied(l.raw(o))
		}
	}
	return l
}

// inEntries encodes a step's operations, each in an entry.
func (l *testLog) inEntries(step [][]byte) (entries [][]byte) {
	for _, o := range step {
		entries = append(entries, l.encode(raftlog.Group{Operations: [][]byte{o}}))
	}
	return entries
}

// stepsAtOnce is how many steps are timed together.
const stepsAtOnce = 16

// timeSteps returns the processor time of some steps, the first of which is the from-th. Before each step
// a snapshot is taken if snapshots are.
func (l *testLog) timeSteps(step func(i, n int) [][]byte, from, n int, snapshots bool) time.Duration {
	var steps [stepsAtOnce][][]byte
	for i := range steps {
		steps[i] = l.inEntries(step(from+i, n))
	}
	began := cputime.Thread()
	for _, entries := range steps {
		if snapshots {
			l.state.Snapshot().Close()
		}
		for _, data := range entries {
			l.index++
			if _, err := l.state.Apply(l.index, data); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	return (cputime.Thread() - began) / stepsAtOnce
}

const (
	// mostTimes is how many times as long as with few a step may take with many, but for what the searches
	// in a larger memory take, which is little beside all that an entry costs: searches, and search for each
	// of many that a step looks at; or, where other processes fill the caches, as long as so many places
	// take that no cache has. The least of some rounds is compared: whatever disturbs a round makes it longer.
	mostTimes                    = 2
	searches, search             = 10 * time.Microsecond, time.Microsecond
	searchesMisses, searchMisses = 150, 15
	// fewRounds are enough if the bound holds, and mostRounds if it does not.
	fewRounds, mostRounds = 5, 12
)

// bounded reports whether steps that look at some more things take about as long with many as with few.
func bounded(least [2]time.Duration, looked int) bool {
	more := least[1] - mostTimes*least[0]
	return more <= searches+time.Duration(looked)*search || more <= time.Duration(searchesMisses+looked*searchMisses)*missTime()
}

// places is one cycle through a memory that is larger than caches are (Sattolo).
var places = sync.OnceValue(func() []uint32 {
	p, random := make([]uint32, 8<<20), rand.New(rand.NewPCG(1, 2))
	for i := range p {
		p[i] = uint32(i)
	}
	for i := len(p) - 1; i > 0; i-- {
		j := random.IntN(i)
		p[i], p[j] = p[j], p[i]
	}
	return p
})

// missTime is how long it takes now to look at a place that no cache has.
func missTime() time.Duration {
	const looks = 20_000
	p, at := places(), rand.Uint32N(uint32(len(places()))) // Not where an earlier call has filled the caches.
	began := cputime.Thread()
	for range looks {
		at = p[at]
	}
	runtime.KeepAlive(at)
	return (cputime.Thread() - began) / looks
}

// grownBy returns the least times of some rounds of a step with few and with many, and whether they are bounded, or those of
// most of the rounds are: memory that is mapped already can make a few rounds of one side cheaper than all of the other.
func grownBy(
	few, many *testLog, step func(i, n int) [][]byte, at *int, sizes [2]int, looked int, snapshots bool,
) (least [2]time.Duration, ok bool) {
	least = [2]time.Duration{math.MaxInt64, math.MaxInt64}
	within := 0
	for round := range mostRounds {
		var took [2]time.Duration
		for i, l := range []*testLog{few, many} {
			took[i] = l.timeSteps(step, *at, sizes[i], snapshots)
			least[i] = min(least[i], took[i])
		}
		*at += stepsAtOnce
		if round >= fewRounds-1 && bounded(least, looked) {
			return least, true
		}
		if bounded(took, looked) {
			within++
		}
	}
	return least, 2*within > mostRounds
}

// boundedKinds are the kinds whose work is bounded otherwise: members, roles, tokens, books.
var boundedKinds = []op.Kind{
	op.KindBootstrap, op.KindMemberAdd, op.KindMemberPromote, op.KindMemberRemove, op.KindWatcherSet, op.KindFormatRaise, op.KindSettingSet,
	op.KindRolesSet, op.KindJoinTokenCreate, op.KindSeriesReconcile,
}

// TestEveryOperationIsTimed, or is one of those whose work is bounded otherwise.
func TestEveryOperationIsTimed(t *testing.T) {
	timed := map[op.Kind]bool{}
	for _, k := range boundedKinds {
		timed[k] = true
	}
	for _, g := range growths {
		for _, step := range g.steps {
			for _, data := range step(0, 1000) {
				if o, err := op.Decode(data); err == nil {
					timed[o.Kind] = true
				}
			}
		}
	}
	for k := range op.Kind(len(operations)) {
		if handled(k) && !timed[k] {
			t.Errorf("operations of kind %d are not timed with many of what they change", k)
		}
	}
}

// BenchmarkGrowth: each step with few and with many, and with a snapshot before it.
func BenchmarkGrowth(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(growths)) {
		for _, n := range []int{1000, 1_000_000} {
			b.Run(fmt.Sprintf("%s=%d", name, n), func(b *testing.B) { benchmarkGrowth(b, growths[name], n) })
		}
	}
}

func benchmarkGrowth(b *testing.B, g growth, n int) {
	l := grown(b, g, n)
	for _, name := range slices.Sorted(maps.Keys(g.steps)) {
		for _, snapshots := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/snapshots=%t", name, snapshots), func(b *testing.B) {
				var took time.Duration
				for i := 0; i < b.N; i += stepsAtOnce {
					took += stepsAtOnce * l.timeSteps(g.steps[name], i, n, snapshots)
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(max(b.N, stepsAtOnce)), "cpu-ns/step")
			})
		}
	}
}

// TestGrowth: the cost of an entry, of Snapshot, and of the first change after it, does not depend on the
// size of the state.
func TestGrowth(t *testing.T) {
	sizes := [2]int{1000, 30_000}
	if tier.All() {
		sizes[1] = 1_000_000
	}
	for _, name := range slices.Sorted(maps.Keys(growths)) {
		t.Run(name, func(t *testing.T) { testGrowth(t, growths[name], sizes) })
	}
}

func testGrowth(t *testing.T, g growth, sizes [2]int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	few, many := grown(t, g, sizes[0]), grown(t, g, sizes[1])
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, name := range slices.Sorted(maps.Keys(g.steps)) {
		at := 0
		for _, snapshots := range []bool{false, true} {
			least, ok := grownBy(few, many, g.steps[name], &at, sizes, g.looked, snapshots)
			t.Logf("%s, after a snapshot: %t: %v with %d, %v with %d", name, snapshots, least[0], sizes[0], least[1], sizes[1])
			if !ok {
				t.Errorf("%s, after a snapshot: %t: takes longer with more", name, snapshots)
			}
		}
	}
}
