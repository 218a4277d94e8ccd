package clients

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/snowflake"
)

// leasing is a cluster with one pool, which is cut off after a number of leases. It fails without a
// pause.
type leasing struct {
	mu     sync.Mutex
	pool   *snowflake.Pool
	late   bool
	window time.Duration
	leases uint64 // how many it gives
	given  uint64
	newest snowflake.Lease
}

// newLeasing returns one whose pool has a sequence of that many bits; late has windows begin an hour later.
func newLeasing(t *testing.T, sequenceBits int, window time.Duration, leases uint64, late bool) *leasing {
	t.Helper()
	layout := snowflake.Layouts["twitter"]
	layout.SequenceBits = sequenceBits
	pool, err := snowflake.NewPool(layout, time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	return &leasing{pool: pool, late: late, window: window, leases: leases}
}

func (l *leasing) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	var answer proto.Message
	var err error
	switch path.Base(r.URL.Path) {
	case "AcquireWorker":
		answer, err = l.acquire(body)
	case "ReleaseWorker":
		answer, err = l.release(body)
	default:
		err = fmt.Errorf("it is cut off")
	}
	if err != nil {
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, `{"code":"failed_precondition","message":"because","details":[{"debug":{"domain":"idnode","reason":"CLOCK_SKEW"}}]}`)
		return
	}
	text, _ := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(answer)
	_, _ = w.Write(text)
}

func (l *leasing) acquire(body []byte) (proto.Message, error) {
	var req idnodev1.AcquireWorkerRequest
	if err := protojson.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	if l.given == l.leases {
		return nil, fmt.Errorf("it is cut off")
	}
	l.given++
	now := snowflake.Request{Want: l.window, Holder: req.GetNow().AsTime(), Leader: time.Now()}
	lease, err := l.pool.Acquire(req.GetHolder(), l.given, now)
	if err != nil {
		return nil, err
	}
	if l.late {
		hour := l.pool.Layout().Units(time.Hour)
		lease.From, lease.Until = lease.From+hour, lease.Until+hour
	}
	l.newest = lease
	layout := l.pool.Layout()
	return &idnodev1.AcquireWorkerResponse{
		Worker: int32(lease.Worker), Token: fmt.Sprintf("%016x", lease.Token), From: lease.From, Until: lease.Until,
		LogIndex: 101,
		Layout: &idnodev1.PoolLayout{
			Epoch: timestamppb.New(time.UnixMilli(layout.Epoch)), Unit: durationpb.New(time.Duration(layout.Unit) * time.Millisecond),
			TimeBits: int32(layout.TimeBits), WorkerBits: int32(layout.WorkerBits), SequenceBits: int32(layout.SequenceBits),
		},
	}, nil
}

func (l *leasing) release(body []byte) (proto.Message, error) {
	var req idnodev1.ReleaseWorkerRequest
	if err := protojson.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	token, err := strconv.ParseUint(req.GetToken(), 16, 64)
	if err != nil {
		return nil, err
	}
	err = l.pool.Release(int(req.GetWorker()), token, req.GetNext())
	return &idnodev1.ReleaseWorkerResponse{LogIndex: 102}, err
}

// TestJavaMakesSnowflakeIds that rise with the clock, and are of the worker. No id comes twice, whatever is in flight while
// the handle is closed, and the next one has the rest of the window. With four a
// millisecond, ids run before the clock.
func TestJavaMakesSnowflakeIds(t *testing.T) {
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  var orders = client.snowflake("orders");
  var ids = orders.nextIds(1000);
  for (var i = 1; i < ids.length; i++) if (ids[i] <= ids[i - 1]) say(ids[i] + " after " + ids[i - 1]);
  var parts = orders.parse(ids[999]);
  say(parts.worker() + " " + (Duration.between(parts.time(), Instant.now()).abs().toMinutes() < 1));
  say(client.async(orders::nextId).join() > ids[999]);
  orders.close();
  orders.close();
  var seen = ConcurrentHashMap.<Long>newKeySet();
  var callers = Executors.newFixedThreadPool(8);
  for (var round = 0; round < 10; round++) {
    var handle = client.snowflake("orders");
    var ended = new ArrayList<Future<?>>();
    for (var i = 0; i < 8; i++) {
      ended.add(callers.submit(() -> {
        try {
          for (; ; ) {
            var id = handle.nextId();
            if (!seen.add(id)) say(id + " twice");
          }
        } catch (ClosedException e) {
          return;
        }
      }));
    }
    handle.nextIds(200);
    handle.close();
    for (var caller : ended) caller.get();
  }
  callers.shutdown();
}`, new(listening).serve(t, newLeasing(t, 2, time.Minute, 100, false).answer))
	if want := "0 true\ntrue\n"; got != want {
		t.Errorf("it said\n%s", got)
	}
}

// TestJavaGoesOnWithoutTheCluster to the end of the window, and not for one id longer. Then it has the error of the lease.
func TestJavaGoesOnWithoutTheCluster(t *testing.T) {
	cluster := newLeasing(t, 12, 6*time.Second, 1, false)
	var node listening
	got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args[0]))) {
  var orders = client.snowflake("orders");
  for (long last = 0; ; Thread.sleep(1)) {
    try {
      last = orders.nextId();
    } catch (IdnodeException e) {
      say(e.reason() + " " + last);
      break;
    }
  }
}`, node.serve(t, cluster.answer))
	var reason string
	var last int64
	if _, err := fmt.Sscan(got, &reason, &last); err != nil {
		t.Fatal(err, got)
	}
	units, _, _ := cluster.pool.Layout().Split(last)
	if l := cluster.newest; reason != "CLOCK_SKEW" || units < l.From+(l.Until-l.From)/2 || units >= l.Until {
		t.Errorf("it ended with %s, and an id of %d; its window was from %d to %d", reason, units, l.From, l.Until)
	}
	renewals := 0
	for _, one := range node.asked {
		if one.method == "RenewWorker" {
			renewals++
		}
	}
	if renewals < 2 {
		t.Errorf("%d renewals", renewals)
	}
}

// TestJavaEndsAWaitForAWindow that begins later: by an interrupt, whose flag stays set, by the caller's time, by the
// client's, and by closing.
func TestJavaEndsAWaitForAWindow(t *testing.T) {
	got := javaProgram(t, patient+`
class Waits {
  static String outcome(Callable<?> work) {
    try {
      return "no error, but " + work.call();
    } catch (IdnodeException e) {
      return e.reason() + " " + e.outcomeUnknown() + " " + Thread.currentThread().isInterrupted() + " " + e.retryAfter().isPresent();
    } catch (Exception e) {
      return e.toString();
    }
  }
}
var orders = client.snowflake("orders");
say(Waits.outcome(() -> orders.nextId(Duration.ofSeconds(2)))); // The first call may take a while.
say(Waits.outcome(client.snowflake("orders", new CallOptions().withDatabase("hasty").withTimeout(Duration.ofMinutes(1)))::nextId));
for (var end : List.<Consumer<Thread>>of(Thread::interrupt, caller -> orders.close())) {
  var said = new LinkedBlockingQueue<String>();
  var caller = new Thread(() -> said.add(Waits.outcome(orders::nextId)));
  caller.start();
  while (caller.getState() != Thread.State.TIMED_WAITING) Thread.yield();
  end.accept(caller);
  say(said.take());
}
client.close();
`, new(listening).serve(t, newLeasing(t, 12, time.Minute, 100, true).answer))
	want := "DEADLINE_EXCEEDED false false false\nWINDOW_EARLY false false true\nCANCELED false true false\nCLIENT_CLOSED false false false\n"
	if got != want {
		t.Errorf("it said\n%swant\n%s", got, want)
	}
}
