package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// heard is what a node was told with a call.
type heard struct {
	Method, Agent, Traceparent string
	Body                       map[string]any
}

// hearing is a node that gives the value 7 and a range of four numbers, and notes the calls.
func hearing(t *testing.T) (endpoint string, calls func() map[string]heard) {
	t.Helper()
	var mu sync.Mutex
	all := make(map[string]heard)
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		h := heard{Method: path.Base(r.URL.Path), Agent: r.Header.Get("User-Agent"), Traceparent: r.Header.Get("Traceparent")}
		_ = json.NewDecoder(r.Body).Decode(&h.Body)
		mu.Lock()
		all[h.Method] = h
		mu.Unlock()
		switch h.Method {
		case "NextRange":
			_, _ = io.WriteString(w, `{"prefix":"users/","low":"1","high":"4","size":"4","nodeTag":"A","fromReserve":false,"token":"AQ==","logIndex":"101"}`)
		case "ReturnRange":
			_, _ = io.WriteString(w, `{"returned":true,"max":"1","logIndex":"102"}`)
		default:
			_, _ = io.WriteString(w, seven)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() map[string]heard {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestPythonSaysWhoCalls: each call has the client's version, the trace that the program names and
// the database of the call, and a range has a label, which is the host's and the program's name.
func TestPythonSaysWhoCalls(t *testing.T) {
	endpoint, calls := hearing(t)
	const program = `
import asyncio, sys, idnode, idnode.aio
sys.argv[0] = "/srv/till\u200b 3.py"
trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
options = {"database": "shop", "traceparent": lambda: trace}
async def main():
    async with idnode.aio.Client(sys.argv[1:], **options) as client:
        await client.identity("invoices", database="books").next()
        await client.hilo("users").next_id()
if idnode_asyncio:
    asyncio.run(main())
else:
    with idnode.Client(sys.argv[1:], **options) as client:
        client.identity("invoices", database="books").next()
        client.hilo("users").next_id()
`
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	label := host + " till 3.py"
	for name, flag := range map[string]string{"threads": "False", "asyncio": "True"} {
		t.Run(name, func(t *testing.T) {
			pythonProgram(t, "idnode_asyncio = "+flag+program, endpoint)
			for method, database := range map[string]string{"NextIdentity": "books", "NextRange": "shop", "ReturnRange": "shop"} {
				got := calls()[method]
				if got.Agent != "idnode-python/1.0.0" || got.Traceparent == "" || got.Body["database"] != database {
					t.Errorf("%s: %+v, want database %s", method, got, database)
				}
			}
			if got := calls()["NextRange"].Body["label"]; len(label) <= 64 && got != label {
				t.Errorf("the label is %q, want %q", got, label)
			}
		})
	}
}

// TestPythonErrorsNameAPause is that of a node which says when the call may be made again.
func TestPythonErrorsNameAPause(t *testing.T) {
	refused := exchange{Method: "NextIdentity", Error: &refusal{Code: "ResourceExhausted", Reason: "RATE_LIMITED", PauseMs: 1500}}
	s := newScript(testCase{Server: []exchange{refused}})
	got := pythonProgram(t, `
import sys, idnode
with idnode.Client(sys.argv[1:]) as client:
    try:
        client.identity("invoices").next()
    except idnode.RateLimitedError as error:
        print(error.retry_after, error)
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "1.5 RATE_LIMITED: because\n"; got != want {
		t.Errorf("the call ended with %s, want %s", got, want)
	}
}

// TestPythonLogsRetries without what calls carry, but for their request ids.
func TestPythonLogsRetries(t *testing.T) {
	s := newScript(testCase{Server: []exchange{
		{Method: "NextIdentity", Error: &refusal{Code: "Unavailable", Reason: "NO_QUORUM"}},
		{Method: "NextIdentity", Answer: json.RawMessage(seven), DelayMs: 400},
	}})
	got := pythonProgram(t, `
import logging, re, sys, idnode
lines = []
class Keeping(logging.Handler):
    def emit(self, record):
        lines.append((record.levelname, record.getMessage()))
logging.getLogger("idnode").addHandler(Keeping())
logging.getLogger("idnode").setLevel("DEBUG")
with idnode.Client(sys.argv[1:]) as client:
    client.identity("secret").next(request_id="order-17")
for level, want in (("INFO", "failed at .*order-17"), ("INFO", "answered .* late"), ("DEBUG", "leads")):
    print(any(l == level and re.search(want, text) for l, text in lines))
print(any("secret" in text for _, text in lines))
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "True\nTrue\nTrue\nFalse\n"; got != want {
		t.Errorf("the log has\n%swant\n%s", got, want)
	}
}

// TestPythonCallsHaveTheirOwnTime: the time of one call, and of one that waits for a handle's range.
func TestPythonCallsHaveTheirOwnTime(t *testing.T) {
	server := httptest.NewServer(greeting(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	got := pythonProgram(t, `
import asyncio, sys, idnode, idnode.aio
kinds = idnode.OutcomeUnknownError, idnode.DeadlineError, idnode.NoEndpointError  # Without a connection in time.
def expect(*errors):
    print(all(isinstance(error, kinds) for error in errors))
client = idnode.Client(sys.argv[1:], timeout=600, try_timeout=600)
def caught(call, *args):
    try:
        call(*args, timeout=0.3)
    except idnode.IdnodeError as error:
        return error
expect(*[caught(call, *args) for call, *args in (
    (client.next, "invoices|"), (client.identity("invoices").next,), (client.identity("invoices").get,),
    (client.series("bills").take, ["a"]), (client.hilo("users").next,), (client.hilo("users").next_ids, 3), (client.id_for, idnode.Client),
)])
async def main():
    client = idnode.aio.Client(sys.argv[1:], timeout=600, try_timeout=600)
    expect(*await asyncio.gather(*(call(*args, timeout=0.3) for call, *args in (
        (client.next, "invoices|"), (client.identity("invoices").next,), (client.hilo("users").next,), (client.hilo("users").next_ids, 3),
    )), return_exceptions=True))
asyncio.run(main())
`, strings.TrimPrefix(server.URL, "http://"))
	if want := "True\nTrue\n"; got != want {
		t.Errorf("the calls ended in time: %s", got)
	}
}

// TestPythonSaysWhatEndedARead: the time, if a node was late; no endpoint, if none was reached; what a node said, if one did.
func TestPythonSaysWhatEndedARead(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"unavailable","message":"no","details":[{"debug":{"domain":"idnode","reason":"NO_QUORUM"}}]}`)
			return
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	got := pythonProgram(t, `
import sys, idnode
def read(endpoint):
    try:
        idnode.Client([endpoint], timeout=2, try_timeout=60).identity("invoices").get()
    except idnode.IdnodeError as error:
        print(type(error).__name__, error.code, error.reason)
read(sys.argv[1])
read(sys.argv[1])
read("127.0.0.1:1")
`, strings.TrimPrefix(server.URL, "http://"))
	want := "DeadlineError deadline_exceeded DEADLINE_EXCEEDED\nNoQuorumError unavailable NO_QUORUM\nNoEndpointError unavailable NO_ENDPOINT\n"
	if got != want {
		t.Errorf("the reads ended with\n%swant\n%s", got, want)
	}
}

// TestPythonReadsTimes: in UTC, to the microsecond; the time of a range is what the next request names.
func TestPythonReadsTimes(t *testing.T) {
	const answer = `{"prefix":"users/","nodeTag":"A","rangeAt":"2026-01-01T00:00:00.123456789Z","size":"4","token":"AQ==","low":"1","high":"4","logIndex":"101"}`
	again := map[string]any{"lastSize": "4", "lastRangeAt": "2026-01-01T00:00:00.123456Z"}
	s := newScript(testCase{Server: []exchange{
		{Method: "TakeNumbers", Answer: json.RawMessage(`{"numbers":[{"key":"a","taken":"2026-01-01T00:00:00.5Z"}],"logIndex":"101"}`)},
		{Method: "NextRange", Answer: json.RawMessage(answer)},
		{Method: "NextRange", Request: again, Answer: json.RawMessage(answer)},
	}})
	got := pythonProgram(t, `
import sys, idnode
with idnode.Client(sys.argv[1:]) as client:
    number = client.series("bills").take(["a"])[0]
    print(number.taken, number.expires)
    first = client.next_range("users")
    print(client.next_range("users", last_size=first.granted, last_at=first.at).at)
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "2026-01-01 00:00:00.500000+00:00 None\n2026-01-01 00:00:00.123456+00:00\n"; got != want {
		t.Errorf("the times are\n%swant\n%s", got, want)
	}
}

// TestPythonHandlesAreIterators, and a handle that was closed has a successor.
func TestPythonHandlesAreIterators(t *testing.T) {
	endpoint, _ := hearing(t)
	got := pythonProgram(t, `
import asyncio, itertools, sys, idnode, idnode.aio
with idnode.Client(sys.argv[1:]) as client:
    users = client.hilo("users")
    print(*itertools.islice(users, 2))
    users.close()
    try:
        users.next()
    except idnode.ClosedError:
        print(client.hilo("users").next_id())
async def main():
    async with idnode.aio.Client(sys.argv[1:]) as client:
        async for id in client.hilo("users"):
            print(id)
            break
asyncio.run(main())
`, endpoint)
	if want := "users/1-A users/2-A\nusers/1-A\nusers/1-A\n"; got != want {
		t.Errorf("the handles gave\n%swant\n%s", got, want)
	}
}

// TestPythonRefusesWrongTypes before a node is asked.
func TestPythonRefusesWrongTypes(t *testing.T) {
	got := pythonProgram(t, `
import idnode
client = idnode.Client(["127.0.0.1:1"], timeout=5)
invoices, bills, users = client.identity("invoices"), client.series("bills"), client.hilo("users")
for call in (
    lambda: idnode.Client("a:7402"), lambda: idnode.Client(b"a:7402"), lambda: idnode.Client([b"a:7402"]), lambda: idnode.Client(None),
    lambda: idnode.Client(["a:7402"], timeout=0), lambda: idnode.Client(["a:7402"], timeout=float("nan")),
    lambda: idnode.Client(["a:7402"], label="é" * 33), lambda: invoices.next(timeout=-1), lambda: users.next(timeout=True),
    lambda: invoices.next_n(True), lambda: invoices.next_n("3"), lambda: users.next_ids(2.0), lambda: invoices.seed("7"), lambda: invoices.seed(True),
    lambda: client.identity(None), lambda: client.hilo(b"users"), lambda: client.next(None), lambda: client.claim(b"users/a"),
    lambda: bills.take("4711"), lambda: bills.take(b"4711"), lambda: bills.void(["a"], None), lambda: list(client.claims(None)),
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, end=" ")
`)
	want := strings.Repeat("ValueError ", 9) + strings.Repeat("TypeError ", 13)
	if got != want {
		t.Errorf("the calls ended with\n%s\nwant\n%s", got, want)
	}
}

// cancelling is a program's beginning that cancels calls in asyncio.
const cancelling = `
import asyncio, sys, idnode, idnode.aio
client = idnode.aio.Client(sys.argv[1:])
async def cancelled(call, seconds):
    task = asyncio.ensure_future(call)
    await asyncio.sleep(seconds)  # With 0 the call has come to its first wait.
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()
`

// TestPythonCancelledCallersTakeNoRange: the fetch of a range goes on, and numbers that the caller has
// not seen are given to the next one. A client is used in its own loop.
func TestPythonCancelledCallersTakeNoRange(t *testing.T) {
	const answer = `{"prefix":"users/","nodeTag":"A","rangeAt":"2026-01-01T00:00:00Z","size":"4","token":"AQ==",`
	s := newScript(testCase{Server: []exchange{
		{Method: "NextRange", Answer: json.RawMessage(answer + `"low":"1","high":"4","logIndex":"101"}`)},
		{Method: "NextRange", Answer: json.RawMessage(answer + `"low":"5","high":"8","logIndex":"102"}`)},
	}})
	got := pythonProgram(t, cancelling+`
async def main():
    users = client.hilo("users")
    print(await cancelled(users.next_id(), 0), await users.next_id())
    print(await cancelled(users.next_ids(5), 0), *await users.next_ids(4))
asyncio.run(main())
for call in (client.hilo("others").next_id, client.identity("invoices").next):
    try:
        asyncio.run(call())
    except RuntimeError as error:
        print(error)
`, s.serveHTTP(t, 1)...)
	s.end(t)
	const other = "the client belongs to another event loop\n"
	want := "True users/1-A\nTrue users/2-A users/3-A users/4-A users/5-A\n" + other + other
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestPythonCancelledCallsAreRepeated with the request id that the caller gave them.
func TestPythonCancelledCallsAreRepeated(t *testing.T) {
	request := map[string]any{"requestId": map[string]any{"id": "order-17"}}
	s := newScript(testCase{Server: []exchange{
		{Method: "NextIdentity", Request: request, Silent: true},
		{Method: "NextIdentity", Request: request, Answer: json.RawMessage(seven)},
	}})
	got := pythonProgram(t, cancelling+`
async def main():
    invoices = client.identity("invoices")
    print(await cancelled(invoices.next(request_id="order-17"), 0.5), await invoices.next(request_id="order-17"))
    await client.close()
asyncio.run(main())
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "True 7\n"; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestPythonTasksShareFewSockets makes thousands of calls at once in asyncio. The leader freezes in the middle of
// them: what waits for its turn there goes elsewhere.
func TestPythonTasksShareFewSockets(t *testing.T) {
	const calls, most = 2000, 128
	var value, frozen, open, peak atomic.Int64
	give := greeting(func(w http.ResponseWriter, _ *http.Request) {
		n := value.Add(1)
		_, _ = fmt.Fprintf(w, `{"blocks":[{"first":"%d","last":"%d"}],"logIndex":"101"}`, n, n)
	})
	leader := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the client leaves.
		if value.Load() < calls/4 {
			give(w, r)
			return
		}
		frozen.Add(1)
		<-r.Context().Done()
	}))
	leader.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			n := open.Add(1)
			for have := peak.Load(); n > have && !peak.CompareAndSwap(have, n); have = peak.Load() {
			}
		case http.StateClosed:
			open.Add(-1)
		}
	}
	leader.Start()
	t.Cleanup(leader.Close)
	other := httptest.NewServer(give)
	t.Cleanup(other.Close)
	got := pythonProgram(t, `
import asyncio, sys, idnode.aio
async def main():
    async with idnode.aio.Client(sys.argv[1:3], try_timeout=600, timeout=600) as client:
        print(len(set(await asyncio.gather(*(client.identity("invoices").next() for _ in range(int(sys.argv[3])))))))
asyncio.run(main())
`, strings.TrimPrefix(leader.URL, "http://"), strings.TrimPrefix(other.URL, "http://"), strconv.Itoa(calls))
	if got != fmt.Sprintln(calls) || peak.Load() > 2*most || frozen.Load() > 4*most {
		t.Errorf("%d calls gave %s different values over %d connections, %d requests to a frozen node", calls, got, peak.Load(), frozen.Load())
	}
}

// TestPythonTakesWhatIsMeant: a number or a time of another kind is refused, and not taken for none.
func TestPythonTakesWhatIsMeant(t *testing.T) {
	got := pythonProgram(t, `
import idnode
bills = idnode.Client(["127.0.0.1:1"], timeout=0.05).series("bills")
for options in ({"number": ""}, {"number": 1.0}, {"expires_in": 1e-10}, {"expires_in": float("nan")}, {"expires_in": float("inf")},
                {"expires_in": "60"}, {"expires_in": ""}):
    try:
        bills.take(["a"], because="by hand", **options)
    except (idnode.IdnodeError, TypeError) as error:
        print(type(error).__name__, getattr(error, "reason", ""), getattr(error, "field", ""))
`)
	const refused = "InvalidError INVALID_OPTION expires_in\n"
	if want := "TypeError  \nTypeError  \n" + refused + refused + refused + refused + refused; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}
