package simulation

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/test/history"
)

var (
	seedsFlag = flag.Int("seeds", 40, "how many seeds to run, after those that once failed")
	fromFlag  = flag.Uint64("from", 1, "the first of them")
	firstFlag = flag.Bool("first", false, "run no more seeds when one has failed")
	onlyFlag  = flag.String("scenario", "", "of those run only the ones that draw this scenario, or repeats, rewinds or live")
	seedFlag  = flag.Uint64("seed", 0, "run only this seed, and print what its nodes log")
)

// TestMain lets garbage lie longer, as long as there is room: a quarter of the
// time would go into it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(2 << 30)
	os.Exit(m.Run())
}

// standstill is the real time that no seed takes.
const standstill = 5 * time.Minute

// enoughSeeds is how many seeds surely have calls of every outcome.
const enoughSeeds = 20

// TestSeeds runs the seeds that failed once, and then others.
func TestSeeds(t *testing.T) {
	if *seedFlag != 0 {
		r := runSeed(t, *seedFlag, os.Stderr)
		fmt.Printf("%v: %d operations, %d faults, %v of virtual time\n", drawPlan(*seedFlag), len(r.ops), r.faults, r.virtual)
		return
	}
	seeds := failedSeeds(t)
	for i := range uint64(*seedsFlag) {
		seeds = append(seeds, *fromFlag+i)
	}
	if *onlyFlag != "" {
		seeds = slices.DeleteFunc(seeds, func(seed uint64) bool { return !drawPlan(seed).draws(*onlyFlag) })
	}
	var sum tally
	var failed atomic.Bool
	begin := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				if *firstFlag && failed.Load() {
					t.SkipNow()
				}
				sum.add(runSeed(t, seed, nil))
				if t.Failed() {
					failed.Store(true)
				}
			})
		}
	})
	fmt.Printf("%d seeds in %v: %v\n", len(seeds), time.Since(begin).Round(time.Millisecond), &sum)
	if len(seeds) >= enoughSeeds &&
		(sum.faults == 0 || sum.calls[history.OK] == 0 || sum.calls[history.Failed] == 0 || sum.calls[history.Unknown] == 0) {
		t.Error("the seeds prove nothing: there were no faults, or calls of one outcome were missing")
	}
}

// failedSeeds reads the seeds that failed once.
func failedSeeds(t *testing.T) []uint64 {
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var seeds []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		number, _, _ := strings.Cut(lines.Text(), " ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// tally is what came of all seeds together.
type tally struct {
	mu      sync.Mutex
	calls   map[history.Outcome]int
	faults  int
	virtual time.Duration
	// reserved are the ranges from reserves, documents the answers with a document's
	// number, snowflakes the ids that callers made, and steps what the model has judged.
	reserved, documents, snowflakes, steps int
}

func (s *tally) add(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[history.Outcome]int{}
	}
	for _, op := range r.ops {
		if op.Kind.IsCall() {
			s.calls[op.Outcome]++
		}
		if op.Reserve {
			s.reserved++
		}
		if op.Kind == history.Take && op.Outcome == history.OK {
			s.documents++
		}
		if op.Kind == history.Make {
			s.snowflakes += len(op.Blocks)
		}
	}
	s.faults += r.faults
	s.virtual += r.virtual
	s.steps += r.steps
}

// String counts in one line.
func (s *tally) String() string {
	return fmt.Sprintf("%.1f hours of virtual time, %d faults, calls: %d ok, %d failed, %d unknown; %d ranges from reserves; %d numbers "+
		"for documents; %d Snowflake ids; %d steps of the model",
		s.virtual.Hours(), s.faults, s.calls[history.OK], s.calls[history.Failed], s.calls[history.Unknown], s.reserved,
		s.documents, s.snowflakes, s.steps)
}

// runSeed runs one seed, and reports what was wrong with it.
func runSeed(t *testing.T, seed uint64, log io.Writer) result {
	p := drawPlan(seed)
	defer standsStill(seed).Stop()
	var r result
	inBubble(t, func() { r = simulate(p, log) })
	if len(r.findings) > 0 {
		t.Errorf("%s\n%v\nagain: make simulate SEED=%d", strings.Join(r.findings, "\n"), p, seed)
	}
	return r
}

// standsStill ends the run if a seed takes standstill of real time. A seed takes
// well under a second. One that stands still waits for a mutex whose holder waits
// for virtual time to pass, which it does not while anybody waits for a mutex.
func standsStill(seed uint64) *time.Timer {
	return time.AfterFunc(standstill, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d stands still; look for sync.Mutex.Lock among the goroutines below", seed))
	})
}

// inBubble runs f in virtual time. Raft may forget a future when it is shut down
// (hashicorp/raft issue 498); a goroutine that waits for one is left behind, which synctest
// takes for a deadlock.
func inBubble(t *testing.T, f func()) {
	defer func() {
		if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
			panic(p)
		}
	}()
	synctest.Test(t, func(*testing.T) { f() })
}
