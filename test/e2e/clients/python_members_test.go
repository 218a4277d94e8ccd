package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPythonCallsOutliveTheirNode: a call that its node holds goes on after the node stopped being an endpoint.
func TestPythonCallsOutliveTheirNode(t *testing.T) {
	held, other := make(chan struct{}), httptest.NewServer(greeting(giveSeven))
	t.Cleanup(other.Close)
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		held <- struct{}{}
		<-time.After(time.Second) // Longer than a try waits until it asks whether its node is silent.
		giveSeven(w, nil)
	}))
	t.Cleanup(server.Close)
	notice := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	t.Cleanup(notice.Close)
	got := pythonProgram(t, `
import sys, threading, urllib.request, idnode
client = idnode.Client(sys.argv[1:2], cluster_id="c")
def call():
    try:
        print(client.identity("invoices").next())
    except Exception as error:
        print(repr(error))
caller = threading.Thread(target=call)
caller.start()
urllib.request.urlopen(sys.argv[3]).close()
client.set_endpoints(sys.argv[2:3])
caller.join()
client.close()
`, strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(other.URL, "http://"), notice.URL)
	if got != "7\n" {
		t.Errorf("the call ended with %s", got)
	}
}

// TestPythonGivesUpARepeatAsUnknown: a call that was made before stays unknown where fail_fast_after ends it at once, so that
// a handle asks for the same range again.
func TestPythonGivesUpARepeatAsUnknown(t *testing.T) {
	got := pythonProgram(t, `
import idnode
client = idnode.Client(["127.0.0.1:1"], timeout=0.5, fail_fast_after=0.1)
for id in None, None, "mine", idnode.RequestId("mine", 7):
    try:
        client.identity("invoices").next(request_id=id)
    except idnode.IdnodeError as error:
        print(type(error).__name__, "fail_fast_after" in str(error), error.request_id if id else "")
`)
	want := "NoEndpointError False \nNoEndpointError False \n" + // The second is let through to try.
		"NoEndpointError True mine\nOutcomeUnknownError True RequestId(id='mine', since=7)\n"
	want = strings.Replace(want, " mine\n", " RequestId(id='mine', since=None)\n", 1)
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestPythonRefusesAnEmptyRequestID: the call would count each time. Nothing is sent.
func TestPythonRefusesAnEmptyRequestID(t *testing.T) {
	got := pythonProgram(t, `
import idnode
client = idnode.Client(["127.0.0.1:1"], timeout=0.5)
a = client.identity("a")
for id in "", idnode.RequestId(""), idnode.RequestId("", 7):
    for call in (
        lambda: client.next("a|", request_id=id), lambda: client.next("a", claim=True, request_id=id), lambda: client.claim("a", request_id=id),
        lambda: client.release("a", request_id=id), lambda: client.next_range("a", request_id=id),
        lambda: a.next(request_id=id), lambda: a.seed(7, request_id=id), lambda: a.delete(request_id=id),
    ):
        try:
            call()
        except idnode.InvalidError as error:
            assert (error.reason, error.field) == ("INVALID_REQUEST_ID", "request_id"), error
print("done")
`)
	if got != "done\n" {
		t.Errorf("the calls ended with %s", got)
	}
}

// TestPythonLearnsNoOddAddresses: an address that is written in another way is not learnt anew in each look, and one that is
// none ends no call.
func TestPythonLearnsNoOddAddresses(t *testing.T) {
	for _, odd := range []string{"localhost:PORT/", "http://b:7402", "b:0", "b:99999"} {
		t.Run(odd, func(t *testing.T) {
			var asked atomic.Int32
			var address string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Idnode-Cluster-Id", "c")
				if path.Base(r.URL.Path) != "GetStatus" {
					giveSeven(w, r)
					return
				}
				asked.Add(1)
				_, _ = io.WriteString(w, `{"clusterId":"c","self":{"tag":"A","httpAddress":"`+address+`"},"leaderTag":"A","hasQuorum":true,"appliedIndex":"100",`+
					`"members":[{"tag":"A","role":"ROLE_LEADER","httpAddress":"`+address+`"},`+
					`{"tag":"B","role":"ROLE_FOLLOWER","httpAddress":"`+odd+`"}]}`)
			}))
			t.Cleanup(server.Close)
			address = strings.TrimPrefix(server.URL, "http://")
			_, port, _ := strings.Cut(address, ":")
			odd = strings.Replace(odd, "PORT", port, 1)
			got := pythonProgram(t, `
import sys, threading, idnode
threading.excepthook = lambda ended: print(ended.exc_value)
with idnode.Client(sys.argv[1:], cluster_id="c") as client:
    for _ in range(500):
        client.identity("invoices").next()
    print("learnt" in repr(client))
`, address)
			if n := asked.Load(); got != "False\n" || n > 50 {
				t.Errorf("it learnt the address: %s, and asked %d times", got, n)
			}
		})
	}
}

// TestPythonReadsAnAnswerThatComesWhileItAsks: a call whose node answers it, but not the question whether it is silent, is not
// made again at the node that answers the question later.
func TestPythonReadsAnAnswerThatComesWhileItAsks(t *testing.T) {
	var slow atomic.Bool
	var others atomic.Int32
	asked := make(chan struct{}, 8)
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case !slow.Load():
		case path.Base(r.URL.Path) == "GetStatus":
			asked <- struct{}{}
			<-r.Context().Done()
			return
		default:
			select {
			case <-asked:
			case <-r.Context().Done():
			}
		}
		greeting(giveSeven)(w, r)
		if path.Base(r.URL.Path) == "NextIdentity" {
			slow.Store(true)
		}
	}))
	t.Cleanup(leader.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "GetStatus" {
			others.Add(1)
			greeting(giveSeven)(w, r)
			return
		}
		if slow.Load() {
			<-time.After(500 * time.Millisecond) // Less than a look takes at most.
		}
		w.Header().Set("Idnode-Cluster-Id", "c")
		_, _ = io.WriteString(w, `{"clusterId":"c","self":{"tag":"B"},"leaderTag":"A","hasQuorum":true,"appliedIndex":"100"}`)
	}))
	t.Cleanup(other.Close)
	got := pythonProgram(t, `
import sys, idnode
with idnode.Client(sys.argv[1:], cluster_id="c", try_timeout=60, timeout=60) as client:
    print(client.identity("invoices").next(), client.identity("invoices").next())
`, strings.TrimPrefix(leader.URL, "http://"), strings.TrimPrefix(other.URL, "http://"))
	if n := others.Load(); got != "7 7\n" || n != 0 {
		t.Errorf("the calls gave %s, and %d of them went to the other node", got, n)
	}
}

// TestPythonCountsOnlyOutages: a try without an answer begins none while others are answered, nor does a time in which nobody asks.
func TestPythonCountsOnlyOutages(t *testing.T) {
	got := pythonProgram(t, `
import time, idnode
from idnode._http import Answer
router = idnode.Client(["127.0.0.1:1"])._core._router
def fails():
    try:
        for _ in range(2):  # The first may be let through.
            router.check_failing(5)
    except Exception as failure:
        return True
    return False
now, clock = 1000, time.monotonic
time.monotonic = lambda: now
router._answer(Answer())
now += 1
router.unanswered(now - 10)
print(fails())
now += 100
print(fails())
router.unanswered(now - 1)
print(fails())
for _ in range(6):
    now += 1
    router.unanswered(now - 1)
print(fails())
router._answer(Answer())
print(fails())
time.monotonic = clock
`)
	if want := "False\nFalse\nFalse\nTrue\nFalse\n"; got != want {
		t.Errorf("calls are given up\n%swant\n%s", got, want)
	}
}

// TestPythonGivesPlacesInTurn to calls of both kinds.
func TestPythonGivesPlacesInTurn(t *testing.T) {
	got := pythonProgram(t, `
import asyncio, time, idnode.aio
async def main():
    client = idnode.aio.Client(["127.0.0.1:1"], max_connections=4)
    node, end = client._router._home, time.monotonic() + 600
    for _ in range(4):
        await node.enter(end, False)
    turns = [asyncio.ensure_future(node.enter(end, to_leader)) for to_leader in (True, False)]
    await asyncio.sleep(0)
    for _ in turns:
        node.leave(False)
        await asyncio.wait({turn for turn in turns if not turn.done()}, return_when=asyncio.FIRST_COMPLETED)
        print([turn.done() for turn in turns])
asyncio.run(main())
`)
	if want := "[True, False]\n[True, True]\n"; got != want {
		t.Errorf("the places were given\n%swant\n%s", got, want)
	}
}

// TestAForkedProcessHasALockOfItsOwn: a child opens connections though another thread of its parent was about to.
func TestAForkedProcessHasALockOfItsOwn(t *testing.T) {
	got := pythonProgram(t, `
import os, signal, idnode
tls = idnode.TLS()
client = idnode.Client(["127.0.0.1:1"], tls=tls, timeout=1)
with tls._lock:
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            client.identity("invoices").next()
        except idnode.DeadlineError:
            os._exit(2)  # It waited for the lock.
        except idnode.NoEndpointError:
            os._exit(0)
    print(os.waitpid(child, 0)[1])
`)
	if got != "0\n" {
		t.Errorf("the child ended with %s", got)
	}
}

// TestPythonChangesNoEndpointsElsewhere than in the loop of a client of asyncio.
func TestPythonChangesNoEndpointsElsewhere(t *testing.T) {
	got := pythonProgram(t, `
import asyncio, idnode.aio
client = idnode.aio.Client(["127.0.0.1:1"])
try:
    client.set_endpoints(["127.0.0.1:2"])
except RuntimeError:
    print(client)
`)
	if want := "<idnode client of 127.0.0.1:1; leader none known; open>\n"; got != want {
		t.Errorf("the client is %s, want %s", got, want)
	}
}

// TestPythonHandlesAreNotDoubled: a copy of one would give its ids again. It is the same one, or refused.
func TestPythonHandlesAreNotDoubled(t *testing.T) {
	_, endpoint := startGiver(t)
	got := pythonProgram(t, `
import asyncio, copy, pickle, sys, idnode, idnode.aio
def refused(one):
    for twice in copy.deepcopy, pickle.dumps:
        try:
            twice(one)
        except TypeError as error:
            print(type(one).__name__, "make one there" in str(error))
with idnode.Client(sys.argv[1:]) as client:
    users, flakes = client.hilo("users"), client.snowflake("flakes")
    print(len({one.next_id() for one in [users, copy.copy(users), users, flakes, copy.copy(flakes), flakes]}))
    for one in users, flakes, client:
        refused(one)
async def main():
    async with idnode.aio.Client(sys.argv[1:]) as client:
        users, flakes = client.hilo("users"), client.snowflake("flakes")
        await users.next_id(), await flakes.next_id()
        print(len({await one.next_id() for one in [users, copy.copy(users), users, flakes, copy.copy(flakes), flakes]}), copy.copy(client) is client)
        for one in users, flakes, client:
            refused(one)
asyncio.run(main())
`, endpoint)
	const refused = "HiLo True\nHiLo True\nSnowflake True\nSnowflake True\nClient True\nClient True\n"
	if want := "6\n" + refused + "6 True\n" + refused; got != want {
		t.Errorf("the copies are\n%swant\n%s", got, want)
	}
}

// TestPythonRefusesWhatIsNoArgument by its name, and sends nothing.
func TestPythonRefusesWhatIsNoArgument(t *testing.T) {
	got := pythonProgram(t, `
import datetime, idnode, idnode.aio
client = idnode.Client(["127.0.0.1:1"], timeout=0.5)
bills, sized = client.series("bills"), client.hilo("sized", first_size=8)
def refused(call, *args, **options):
    try:
        print("passed", call(*args, **options))
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
    except Exception as error:
        print("raw", type(error).__name__, error)
for make in idnode.Client, idnode.aio.Client:
    for option, value in dict(tls="ca.crt", label=5, cluster_id=None, observe=5, traceparent="00-1").items():
        refused(make, ["127.0.0.1:1"], **{option: value})
refused(idnode.Client, ["127.0.0.1:1"], tls=True)
refused(client.id_for, client)
refused(client.id_for, "Order")
refused(client.next_range, "users", last_at="2026-12-31")
refused(client.next_range, "users", last_at="")
refused(bills.confirm, [5])
refused(bills.void, [None], "because")
refused(bills.take, ["a"], date=datetime.date(2026, 12, 31))
print(client.hilo("sized", first_size=8)._core is client.hilo("sized")._core)
refused(client.hilo, "sized", first_size=9)
`)
	want := strings.Repeat(`ValueError tls is an ssl.SSLContext or a TLS, as TLS(ca="ca.crt"), not 'ca.crt'
ValueError a label is text of at most 64 bytes, not 5
ValueError not the id of a cluster: None
ValueError observe is a function, not 5
ValueError traceparent is a function, not '00-1'
`, 2) + `ValueError tls is an ssl.SSLContext or a TLS, as TLS(ca="ca.crt"), not True
TypeError a class is expected, not <idnode client of 127.0.0.1:1; leader none known; open>
TypeError a class is expected, not 'Order'
TypeError last_at is a datetime, not '2026-12-31'
TypeError last_at is a datetime, not ''
TypeError a key or a DocumentNumber is expected, not 5
TypeError a key or a DocumentNumber is expected, not None
TypeError date is text, not datetime.date(2026, 12, 31)
True
ValueError the handle of 'sized' is there already, with first_size=8
`
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}
