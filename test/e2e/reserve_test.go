package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// reserveFaultsVariable says how many leaders are killed; each kind of partition comes
// half as often, and one node is cut off for six seconds a leader.
const reserveFaultsVariable = "IDNODE_E2E_RESERVES"

// rangeCallsEvery is how often each node is asked for a range, whether or not it has
// answered the call before: a late answer must not hide the calls that would have come
// after it.
const rangeCallsEvery = 20 * time.Millisecond

// rangeSize is how many numbers a call asks for.
const rangeSize = 4

// rangeCall is one call for a range, of a caller who may see no failure.
type rangeCall struct {
	node  string
	begin time.Time
	took  time.Duration
	err   error
}

// rangeLoad asks all nodes for ranges.
type rangeLoad struct {
	c      *harness.Cluster
	ledger *harness.Ledger

	mu sync.Mutex
	// strict are the nodes whose calls count, by tag.
	strict map[string]bool
	calls  []rangeCall
}

// expect has the calls of these nodes count from now on, and forgets those before.
func (l *rangeLoad) expect(nodes ...*harness.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strict, l.calls = map[string]bool{}, nil
	for _, n := range nodes {
		l.strict[n.Tag] = true
	}
}

// ended records a call.
func (l *rangeLoad) ended(call rangeCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.strict[call.node] {
		l.calls = append(l.calls, call)
	}
}

// run calls until stop is called, which waits for the callers.
func (l *rangeLoad) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for _, n := range l.c.Nodes {
		callers.Go(func() {
			tick := time.NewTicker(rangeCallsEvery)
			defer tick.Stop()
			for ; ctx.Err() == nil; <-tick.C {
				callers.Go(func() { l.call(n) })
			}
		})
	}
	stop = func() { cancel(); callers.Wait() }
	t.Cleanup(stop)
	return stop
}

func (l *rangeLoad) call(n *harness.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	begin := time.Now()
	got, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", Size: rangeSize})
	if err == nil {
		l.ledger.Record("orders", "a caller of "+n.Tag, got.Low, got.High)
	}
	l.ended(rangeCall{n.Tag, begin, time.Since(begin), err})
}

// after waits until each strict node has ended this many calls that began after a moment,
// and returns those of all.
func (l *rangeLoad) after(t *testing.T, moment time.Time, each int) (calls []rangeCall) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, "calls after the fault", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		calls = nil
		ended := map[string]int{}
		for _, call := range l.calls {
			if call.begin.After(moment) {
				ended[call.node]++
				calls = append(calls, call)
			}
		}
		for tag := range l.strict {
			if ended[tag] < each {
				return fmt.Errorf("node %s: %d of %d", tag, ended[tag], each)
			}
		}
		return nil
	})
	return calls
}

// rangeFigures are how calls for ranges ended after faults of one kind.
type rangeFigures struct {
	calls, failed int
	took          []time.Duration
	// longest is the longest call after each fault.
	longest []time.Duration
}

func (f *rangeFigures) add(calls []rangeCall) {
	var longest time.Duration
	for _, call := range calls {
		f.calls++
		if call.err != nil {
			f.failed++
		}
		f.took = append(f.took, call.took)
		longest = max(longest, call.took)
	}
	f.longest = append(f.longest, longest)
}

func (f *rangeFigures) String() string {
	return fmt.Sprintf("%d calls, %d failed; p50 %s, p99 %s, p99.9 %s; the longest after each fault: p50 %s, p99 %s, max %s",
		f.calls, f.failed, of(f.took, 500), of(f.took, 990), of(f.took, 999), of(f.longest, 500), of(f.longest, 990), of(f.longest, 1000))
}

// reserveFaults are what happens to the leader or to a follower, and whose callers may
// see no failure.
var reserveFaults = []struct {
	name   string
	strike func(c *harness.Cluster, leader, follower *harness.Node) (served []*harness.Node)
}{
	{"leader killed", func(c *harness.Cluster, leader, _ *harness.Node) []*harness.Node {
		leader.Process.Kill()
		return c.Others(leader)
	}},
	{"leader cut off", func(c *harness.Cluster, leader, _ *harness.Node) []*harness.Node {
		c.Isolate(leader)
		return c.Nodes
	}},
	{"follower cut off", func(c *harness.Cluster, _, follower *harness.Node) []*harness.Node {
		c.Isolate(follower)
		return c.Nodes
	}},
	{"all links cut", func(c *harness.Cluster, _, _ *harness.Node) []*harness.Node {
		c.CutAll()
		return c.Nodes
	}},
}

// TestRangesThroughFaults: while leaders are killed and nodes cut off, no call for a range
// fails at a node that has a reserve, and no number comes twice. It prints how long the
// calls took that began within a second and a half of a fault. A measured run has a
// cluster without reserves beside it, whose calls may fail.
func TestRangesThroughFaults(t *testing.T) {
	tier.Long(t)
	modes, leaders := map[string][]string{"with": {"--reserve-for=20s"}}, 2
	if v := os.Getenv(reserveFaultsVariable); v != "" {
		modes["without"] = nil
		var err error
		if leaders, err = strconv.Atoi(v); err != nil || leaders < 2 {
			t.Fatalf("%s=%q: a number above 1 is needed", reserveFaultsVariable, v)
		}
	}
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throughFaults(t, flags, leaders)
		})
	}
	t.Run("cut off for long", func(t *testing.T) {
		t.Parallel()
		cutOffForLong(t, time.Duration(leaders)*6*time.Second)
	})
}

func throughFaults(t *testing.T, flags []string, leaders int) {
	c := harness.StartCluster(t, harness.Config{Flags: flags})
	l := &rangeLoad{c: c, ledger: harness.NewLedger(t)}
	stop := l.run(t)
	for i, fault := range reserveFaults {
		count := leaders
		if i > 0 {
			count /= 2
		}
		figures, before := &rangeFigures{}, l.lost(t)
		for n := range count {
			c.WaitReady(t)
			leader := c.Leader(t)
			if flags != nil {
				awaitReserves(t, 20*time.Second, 500, c.Nodes...)
			}
			moment := time.Now()
			l.expect(fault.strike(c, leader, c.Others(leader)[n%2])...)
			figures.add(l.after(t, moment, int(1500*time.Millisecond/rangeCallsEvery)))
			l.expect()
			c.Heal()
			if !leader.Process.Running() {
				leader.Start(t)
			}
		}
		t.Logf("%d times %s: %s; %d numbers were lost", count, fault.name, figures, l.lost(t)-before)
		if flags != nil && figures.failed > 0 {
			t.Errorf("%d calls failed", figures.failed)
		}
	}
	stop()
	c.WaitReady(t)
	c.Agree(t)
}

// lost is how many numbers the cluster has counted as issued that no caller got and no
// node has in reserve. Calls in flight make it inexact by a few.
func (l *rangeLoad) lost(t *testing.T) int64 {
	t.Helper()
	l.c.WaitReady(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var reserved float64
	for _, n := range l.c.Nodes {
		numbers, err := reserveOf(n)
		if err != nil {
			t.Fatal(err)
		}
		reserved += numbers
	}
	given := l.ledger.Count("orders")
	counter, err := l.c.Leader(t).Ids.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	return counter.GetHilo().GetMax() - given - int64(reserved)
}

// cutOffForLong: a node that is cut off goes on for as long as its reserve was asked to last.
func cutOffForLong(t *testing.T, length time.Duration) {
	c := harness.StartCluster(t, harness.Config{Flags: []string{"--reserve-for", (2 * length).String()}})
	l := &rangeLoad{c: c, ledger: harness.NewLedger(t)}
	stop := l.run(t)
	awaitReserves(t, 2*time.Minute, float64(length/rangeCallsEvery)*rangeSize, c.Nodes...)
	c.Isolate(c.Others(c.Leader(t))[0])
	l.expect(c.Nodes...)
	end := time.NewTimer(length)
	defer end.Stop()
	<-end.C
	figures := &rangeFigures{}
	figures.add(l.after(t, time.Time{}, 1))
	l.expect()
	c.Heal()
	stop()
	t.Logf("one node %s cut off: %s", length, figures)
	if figures.failed > 0 {
		t.Errorf("%d calls failed", figures.failed)
	}
}

// of is harness.QuantileOfTimes, as it is printed.
func of(times []time.Duration, share int) time.Duration {
	return harness.QuantileOfTimes(times, share).Round(10 * time.Microsecond)
}

// reserveOf reads how many numbers a node has in reserve.
func reserveOf(n *harness.Node) (float64, error) {
	res, err := http.Get("http://" + n.HTTP + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(body), "\nidnode_hilo_reserve_numbers ")
	value, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(value, 64)
}

// awaitReserves waits until each of the nodes has this many numbers in reserve.
func awaitReserves(t *testing.T, within time.Duration, least float64, nodes ...*harness.Node) {
	t.Helper()
	harness.Eventually(t, within, "numbers in reserve", func(context.Context) error {
		for _, n := range nodes {
			if numbers, err := reserveOf(n); err != nil || numbers < least {
				return fmt.Errorf("node %s: %v of %v %v", n.Tag, numbers, least, err)
			}
		}
		return nil
	})
}
