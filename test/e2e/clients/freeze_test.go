package clients

import (
	"encoding/json"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestLeadersFrozen stops the process of one leader after the other, as a machine that hangs
// would, while 64 callers of each client take values and HiLo ids: no number comes twice, none
// is missing, no call fails, and those in flight end long before the time of a try.
func TestLeadersFrozen(t *testing.T) {
	tier.Long(t)
	eachLanguage(t, func(t *testing.T, l language) {
		freezeLeaders(t, func(c *harness.Cluster, b *book) func() { return l.takeIDs(t, c, "", b) })
	})
	t.Run("go", func(t *testing.T) {
		freezeLeaders(t, func(c *harness.Cluster, b *book) func() { return takeIDsGo(t, c, client.Config{}, b) })
	})
}

func freezeLeaders(t *testing.T, takeIDs func(*harness.Cluster, *book) (stop func())) {
	c := harness.StartCluster(t, harness.Config{})
	b := &book{ids: make(map[string]bool)}
	stop := takeIDs(c, b)
	var frozen []int64
	for begin := time.Now(); time.Since(begin) < killing(t); {
		b.await(t, 500)
		leader := c.Leader(t)
		frozen = append(frozen, monotonic(t))
		leader.Process.Signal(t, syscall.SIGSTOP)
		b.await(t, 500)
		leader.Process.Signal(t, syscall.SIGCONT)
		c.WaitReady(t)
	}
	stop()
	b.judge(t)
	var longest []time.Duration // for each leader
	for _, at := range frozen {
		longest = append(longest, slices.Max(append(b.inFlight(at), 0)))
	}
	slices.Sort(longest)
	t.Logf("the longest call in flight at each of the %d frozen leaders took %s", len(longest), longest)
	// On a busy machine a voter may notice later than another, and the second election is Raft's own.
	if most := longest[len(longest)*3/4]; most > client.DefaultTryTimeout/2 {
		t.Errorf("at more than a quarter of the leaders a call took %s or longer", most)
	}
	c.Agree(t)
}

// inFlight returns the times of the calls that were in flight at a moment.
func (b *book) inFlight(at int64) (took []time.Duration) {
	for _, op := range b.ops {
		if op.Call <= at && at < op.Return {
			took = append(took, time.Duration(op.Return-op.Call))
		}
	}
	return took
}

// monotonic is the clock that the clients time their calls with.
func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

// takeIDsGo is takeIDs for the Go client.
func takeIDsGo(t *testing.T, c *harness.Cluster, cfg client.Config, b *book) (stop func()) {
	t.Helper()
	for _, n := range c.Nodes {
		cfg.Endpoints = append(cfg.Endpoints, n.GRPC)
	}
	cl, err := client.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	for i := range int64(callers) {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					line, _ := json.Marshal(takeGo(t, cl, i+1)) // It has nothing that JSON cannot say.
					b.add(line)
				}
			}
		})
	}
	return func() {
		close(end)
		all.Wait()
		if err := cl.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func takeGo(t *testing.T, cl *client.Client, caller int64) took {
	began := monotonic(t)
	value, err := cl.Identity("called").Next(t.Context())
	got := took{Client: caller, Call: began, Return: monotonic(t), Value: value}
	if err == nil {
		got.ID, err = cl.HiLo("users").NextID(t.Context())
	}
	if err != nil {
		got.Error = err.Error()
	}
	return got
}
