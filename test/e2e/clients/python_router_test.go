package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
)

// TestPythonFollowsTheLeaderThatAnswersName: the next call goes to the leader of the greatest term that an answer has named.
func TestPythonFollowsTheLeaderThatAnswersName(t *testing.T) {
	followsTheLeader(t, pythonProgram, `
import sys, idnode
with idnode.Client(sys.argv[1:]) as client:
    for _ in range(3):
        client.identity("invoices").next()
`)
}

// TestPythonLearnsAddresses: a client goes on with the nodes that its cluster tells of when its endpoint is gone, but not
// with one of another cluster, and forgets what is no member.
func TestPythonLearnsAddresses(t *testing.T) {
	learnsAddresses(t, 2, pythonProgram, `
import sys, idnode
with idnode.Client(sys.argv[1:2], cluster_id="c") as client:
    print(client.identity("invoices").next(), client)
    client.identity("invoices").next()  # The endpoint's last.
    print(client.identity("invoices").next())
    while "127.0.0.1:1;" in repr(client):
        client.identity("invoices").next()  # Until a look was answered.
    print(client)
`, `7 <idnode client of %[1]s, learnt %[2]s, %[3]s, 127.0.0.1:1; leader none known; open>
7
<idnode client of %[1]s, learnt %[2]s, %[3]s; leader none known; open>
`)
}

// TestPythonTakesOtherEndpoints: after a change of the endpoints the calls go to the new ones.
func TestPythonTakesOtherEndpoints(t *testing.T) {
	takesOtherEndpoints(t, pythonProgram, `
import asyncio, sys, idnode, idnode.aio
with idnode.Client(sys.argv[1:2]) as client:
    client.identity("invoices").next()
    client.set_endpoints(sys.argv[2:])
    client.identity("invoices").next()
    for wrong in [], ["a"], "a:1":
        try:
            client.set_endpoints(wrong)
        except ValueError:
            print("refused")
    client.identity("invoices").next()
async def main():
    async with idnode.aio.Client(sys.argv[1:2]) as client:
        client.set_endpoints(sys.argv[2:])
        await client.identity("invoices").next()
asyncio.run(main())
`, "refused\nrefused\nrefused\n", 3)
}

// TestPythonKeepsPlaces: identities that a node holds do not keep out what it can answer, and what finds no place in time
// is an overload, of which nothing happened.
func TestPythonKeepsPlaces(t *testing.T) {
	server := httptest.NewServer(greeting(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if path.Base(r.URL.Path) == "NextIdentity" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"ids":["users/1-A"],"blocks":[],"identity":{"value":"3"},"logIndex":"101"}`)
	}))
	t.Cleanup(server.Close)
	got := pythonProgram(t, `
import asyncio, sys, threading, idnode, idnode.aio
options = {"max_connections": 4, "try_timeout": 600, "timeout": 600}
def threads():
    client = idnode.Client(sys.argv[1:], **options)
    client.next("users/")
    for _ in range(8):
        threading.Thread(target=client.identity("a").next, daemon=True).start()
    while len(client._core._router._home._waiting[True]) < 5:
        pass
    print(client.next("users/"), client.identity("a").get(stale=True))
    try:
        client.identity("a").next(timeout=0.1)
    except idnode.OverloadedError as error:
        print(error.reason)
async def tasks():
    client = idnode.aio.Client(sys.argv[1:], **options)
    await client.next("users/")
    held = [asyncio.ensure_future(client.identity("a").next()) for _ in range(8)]
    while len(client._router._home._waiting[True]) < 5:
        await asyncio.sleep(0)
    print(await client.next("users/"), await client.identity("a").get(stale=True))
    try:
        await client.identity("a").next(timeout=0.1)
    except idnode.OverloadedError as error:
        print(error.reason)
    for task in held:
        task.cancel()
    await asyncio.wait(held)
    print(client._router._home._calls, client._router._home._led)
asyncio.run(tasks())
threads()
`, strings.TrimPrefix(server.URL, "http://"))
	const want = "users/1-A 3\nOVERLOADED\n"
	if got != want+"0 0\n"+want {
		t.Errorf("the calls ended with\n%s", got)
	}
}

// TestPythonIsConfigured by the environment and by URLs, as the other clients are.
func TestPythonIsConfigured(t *testing.T) {
	urls, err := os.ReadFile("../../../clients/conformance/urls.json")
	if err != nil {
		t.Fatal(err)
	}
	got := pythonProgram(t, `
import json, os, re, sys, idnode, idnode.aio
from idnode import _config
for url, want in json.loads(sys.argv[1]).items():
    url, error = (re.sub("^idnode:", "idnode+http:", text) for text in (url, want.get("error", "?")))
    try:
        got = _config.parse(url)
        idnode.Client(got["endpoints"])
    except ValueError as refused:
        if error not in str(refused) or want.get("hides", "?!") in str(refused):
            print(url, "is refused:", refused)
        continue
    names = {"cluster_id": "clusterId", "server_name": "serverName"}
    got = {names.get(name, name): value for name, value in got.items()}
    if "tls" in got:
        got["tls"] = {names.get(name, name): value for name, value in got["tls"].items()}
    if got != want:
        print(url, got)
try:
    idnode.Client.from_url("idnode://a:7400")
except ValueError as refused:
    print(str(refused).partition(":// ")[2])
for kind in idnode.Client, idnode.aio.Client:
    print(kind.from_url("idnode+http://a:1,b:1/shop", timeout=3))
    for variables in (
        {"IDNODE_HTTP_ENDPOINTS": "a:1, b:1", "IDNODE_DATABASE": "shop", "IDNODE_CLUSTER_ID": "c"}, {}, {"IDNODE_HTTP_ENDPOINTS": " ,"},
        {"IDNODE_HTTP_ENDPOINTS": "a:1", "IDNODE_TLS_CA": "/missing"}, {"IDNODE_HTTP_ENDPOINTS": "a:1", "IDNODE_TLS_CERT": "x"},
    ):
        os.environ.update(variables)
        try:
            print(kind.from_env(endpoints=["c:1"]) if len(variables) == 3 else kind.from_env())
        except (ValueError, OSError) as error:
            print(error)
        for name in variables:
            del os.environ[name]
    os.environ["IDNODE_TLS_CA"] = "/missing"
    print(kind.from_env(endpoints=["c:1"], tls=None))
    del os.environ["IDNODE_TLS_CA"]
`, string(urls))
	const missing = "IDNODE_HTTP_ENDPOINTS is not set: it is the list of the nodes' HTTP addresses, as a:7402,b:7402\n"
	one := "<idnode client of a:1, b:1; leader none known; open>\n<idnode client of c:1; leader none known; open>\n" + missing + missing +
		"[Errno 2] No such file or directory: '/missing'\nthere are variables of TLS, but no IDNODE_TLS_CA\n<idnode client of c:1; leader none known; open>\n"
	want := "names gRPC addresses, and this client calls HTTP ones: a URL of idnode is " +
		"idnode+http://HOST:PORT,HOST:PORT/DATABASE?PARAMETERS, not 'idnode://a:7400'\n" + one + one
	if got != want {
		t.Errorf("the clients are\n%swant\n%s", got, want)
	}
}

// TestPythonErrorsHaveFamilies that frameworks know, and cross processes.
func TestPythonErrorsHaveFamilies(t *testing.T) {
	server := httptest.NewServer(greeting(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	got := pythonProgram(t, `
import gc, pickle, sys, time, warnings, idnode
def caught(call, **options):
    try:
        call(**options)
    except idnode.IdnodeError as error:
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.reason, again.request_id) == (str(error), error.reason, error.request_id)
        print(type(error).__name__, isinstance(error, TimeoutError), isinstance(error, ConnectionError))
nobody = idnode.Client(["127.0.0.1:1"], timeout=0.5)
caught(nobody.identity("a").next)
client = idnode.Client(sys.argv[1:])
caught(client.identity("a").next, timeout=0.5)
caught(client.identity("a").get, timeout=0.5)
caught(client.hilo("a").next, timeout=0.5)
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as heard:
    del client
    # What is left of its calls ends with the time of a try.
    end = time.monotonic() + 30
    while not heard and time.monotonic() < end:
        gc.collect()
print(*{(w.category.__name__, "was not closed" in str(w.message)) for w in heard if w.category is ResourceWarning and "idnode client" in str(w.message)})
quick = idnode.Client(["127.0.0.1:1"], timeout=0.5, fail_fast_after=0.1)
caught(quick.identity("a").next)
caught(quick.identity("a").next)
began = time.monotonic()
for _ in range(100):
    try:
        quick.identity("a").next(timeout=5)
    except idnode.NoEndpointError as error:
        text = str(error)
print("fail_fast_after" in text, time.monotonic() - began < 50)
`, strings.TrimPrefix(server.URL, "http://"))
	want := `NoEndpointError False True
OutcomeUnknownError True False
DeadlineError True False
DeadlineError True False
('ResourceWarning', True)
NoEndpointError False True
NoEndpointError False True
True True
`
	if got != want {
		t.Errorf("the errors are\n%swant\n%s", got, want)
	}
}

// TestPythonTellsAnObserver of tries, looks, leaders and gaps. What it raises ends no call.
func TestPythonTellsAnObserver(t *testing.T) {
	refused := exchange{Method: "NextIdentity", Error: &refusal{Code: "PermissionDenied", Reason: "PERMISSION_DENIED"}}
	s := newScript(testCase{Server: []exchange{
		{Method: "NextRange", Answer: []byte(`{"prefix":"users/","nodeTag":"A","rangeAt":"2026-01-01T00:00:00Z","size":"4","token":"AQ==","low":"1","high":"4","logIndex":"101"}`)},
		refused,
		{Method: "ReturnRange", Answer: []byte(`{"returned":false,"max":"9","logIndex":"102"}`)},
	}})
	got := pythonProgram(t, `
import sys, idnode
heard = []
def observe(event):
    heard.append(event)
    raise ValueError("its own")
with idnode.Client(sys.argv[1:], observe=observe) as client:
    client.hilo("users").next_id()
    try:
        client.identity("a").next()
    except idnode.PermissionDeniedError:
        pass
for event in heard:
    assert event.duration >= 0 and event.node in ("", *sys.argv[1:])
    print(event.kind, bool(event.node), event.attempt, event.err.reason if event.err else "")
`, s.serveHTTP(t, 1)...)
	s.end(t)
	for _, want := range []string{"leader True 0 \n", "look True 0 \n", "try True 1 PERMISSION_DENIED\n", "gap False 0 \n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the observer heard\n%swithout %s", got, want)
		}
	}
}

// TestPythonReadsCertificatesAgain: files that were replaced are used for new connections, but only once they fit each other.
// At the end nothing of the old authority is accepted.
func TestPythonReadsCertificatesAgain(t *testing.T) {
	for _, kind := range []string{"threads", "asyncio"} {
		t.Run(kind, func(t *testing.T) {
			got := pythonProgram(t, `
import asyncio, logging, os, shutil, sys, tempfile, urllib.request, idnode, idnode.aio
endpoint, old, renewed, turn, kind = sys.argv[1:]
into = tempfile.mkdtemp()
def copy(source, *names):
    for name in names:
        shutil.copy(os.path.join(source, name), into)
names = "ca.crt", "client.crt", "client.key"
copy(old, *names)
tls = idnode.TLS(ca=into + "/ca.crt", cert=into + "/client.crt", key=into + "/client.key")
warned = []
class Keeping(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage()) if record.levelname == "WARNING" else None
logging.getLogger("idnode").addHandler(Keeping())
async def steps(call):
    print(await call())
    copy(renewed, "client.crt")  # The key is that of the old one.
    while not warned:
        await call()
    print(await call(), "cannot be read again" in warned[0])
    copy(renewed, *names)
    urllib.request.urlopen(turn).close()
    print(await call())
async def tasks():
    async with idnode.aio.Client([endpoint], tls=tls, timeout=60) as client:
        await steps(client.identity("invoices").next)
def threads():
    with idnode.Client([endpoint], tls=tls, timeout=60) as client:
        async def call():
            return client.identity("invoices").next()
        asyncio.run(steps(call))
threads() if kind == "threads" else asyncio.run(tasks())
shutil.rmtree(into)
`, append(renewing(t), kind)...)
			if got != "7\n7 True\n7\n" {
				t.Errorf("the calls gave %s", got)
			}
		})
	}
}
