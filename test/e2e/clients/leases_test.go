package clients

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

const (
	pool = "orders"
	// makers is how many of a client make Snowflake ids at once.
	makers = 8
)

// TestSnowflakesWhileLeadersAreKilled has two clients of each language make ids of one pool, and go on
// while there is no leader: no id comes twice, those of a caller rise, and none is outside of its window.
func TestSnowflakesWhileLeadersAreKilled(t *testing.T) {
	tier.Long(t)
	eachLanguage(t, func(t *testing.T, l language) {
		makeWhileLeadersAreKilled(t, func(c *harness.Cluster, first int64, s *sheet) (stop func()) {
			return l.load(t, c, "", load{Callers: makers, Client: first, Pool: pool}, s.add)
		})
	})
	t.Run("go", func(t *testing.T) {
		makeWhileLeadersAreKilled(t, func(c *harness.Cluster, first int64, s *sheet) (stop func()) {
			return makeGo(t, c, first, s)
		})
	})
}

func makeWhileLeadersAreKilled(t *testing.T, start func(*harness.Cluster, int64, *sheet) (stop func())) {
	t.Helper()
	c := harness.StartCluster(t, harness.Config{})
	pools := idnodev1.NewSnowflakeServiceClient(c.Leader(t).Conn)
	define := &idnodev1.DefinePoolRequest{Name: pool, LayoutName: "javascript", Window: durationpb.New(10 * time.Second)}
	if _, err := pools.DefinePool(t.Context(), define); err != nil {
		t.Fatal(err)
	}
	s := &sheet{ids: make(map[int64]bool), last: make(map[int64]int64)}
	stop, stopOther := start(c, 0, s), start(c, makers, s)
	for begin := time.Now(); time.Since(begin) < killing(t); {
		s.await(t, 1000)
		leader := c.Leader(t)
		leader.Process.Kill()
		s.await(t, 1000)
		leader.Start(t)
		c.WaitReady(t)
	}
	stop()
	stop = start(c, 2*makers, s) // It gets the rest of a window.
	s.await(t, 1000)
	stop()
	stopOther()
	s.judge(t, idnodev1.NewSnowflakeServiceClient(c.Leader(t).Conn))
	c.Agree(t)
}

// sheet holds the ids that clients made.
type sheet struct {
	mu    sync.Mutex
	ids   map[int64]bool
	last  map[int64]int64 // by the caller
	wrong []string
}

// made is one line of a runner: ids in the order in which one caller made them.
type made struct {
	Client int64    `json:"client"`
	IDs    []string `json:"ids"`
	Error  string   `json:"error"`
}

func (s *sheet) add(line []byte) {
	var got made
	if err := json.Unmarshal(line, &got); err != nil {
		got.Error = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.Error != "" {
		s.wrong = append(s.wrong, got.Error)
	}
	for _, text := range got.IDs {
		id, err := strconv.ParseInt(text, 10, 64)
		if last := s.last[got.Client]; err != nil || id <= last || s.ids[id] {
			s.wrong = append(s.wrong, fmt.Sprintf("caller %d made %q after %d: there before %t, %v", got.Client, text, last, s.ids[id], err))
		}
		s.ids[id], s.last[got.Client] = true, id
	}
}

// await waits until the clients made n more ids.
func (s *sheet) await(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.ids)
	}
	end := count() + n
	for deadline := time.Now().Add(30 * time.Second); count() < end; {
		if time.Now().After(deadline) {
			t.Fatalf("%d ids of %d; %q", count(), end, s.wrong)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// judge checks the ids, and that the cluster knows their workers, with windows that end behind them.
func (s *sheet) judge(t *testing.T, pools idnodev1.SnowflakeServiceClient) {
	t.Helper()
	for _, wrong := range s.wrong[:min(len(s.wrong), 20)] {
		t.Error(wrong)
	}
	listed, err := pools.ListWorkers(t.Context(), &idnodev1.ListWorkersRequest{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	ends := make(map[int]time.Time)
	for _, w := range listed.GetWorkers() {
		ends[int(w.GetWorker())] = w.GetUntil().AsTime()
		if !w.GetFree() {
			t.Errorf("worker %d of a client that is closed is not free", w.GetWorker())
		}
	}
	layout := snowflake.Layouts["javascript"]
	for id := range s.ids {
		units, worker, _ := layout.Split(id)
		if at := time.UnixMilli(layout.UnixMilli(units)); !at.Before(ends[worker]) {
			t.Fatalf("%d of worker %d is at %s; the window ended at %s", id, worker, at, ends[worker])
		}
	}
	t.Logf("%d ids of %d workers", len(s.ids), len(ends))
}

// makeGo starts callers of the Go client.
func makeGo(t *testing.T, c *harness.Cluster, first int64, s *sheet) (stop func()) {
	t.Helper()
	var endpoints []string
	for _, n := range c.Nodes {
		endpoints = append(endpoints, n.GRPC)
	}
	cl, err := client.New(t.Context(), client.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	for i := range int64(makers) {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(10 * time.Millisecond):
					line, _ := json.Marshal(tenGo(t, cl, first+i)) // It has nothing that JSON cannot say.
					s.add(line)
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

func tenGo(t *testing.T, cl *client.Client, caller int64) made {
	ids, err := cl.Snowflake(pool).NextN(t.Context(), 10)
	got := made{Client: caller}
	if err != nil {
		got.Error = err.Error()
	}
	for _, id := range ids {
		got.IDs = append(got.IDs, number(id))
	}
	return got
}
