package clients

import (
	"encoding/json"
	"testing"
)

// TestPythonHandlesOutliveASignal: a signal's handler may raise, as that of a time limit does, while a handle starts a thread. What
// has not begun then is begun by the next caller, and what has begun goes on.
func TestPythonHandlesOutliveASignal(t *testing.T) {
	const layout = `"layout":{"unit":"3600s","timeBits":41,"workerBits":10,"sequenceBits":12},"logIndex":"101"}`
	const ago = 19_800_000 // The time is 5 then.
	tagged := func(tag string) exchange {
		return exchange{Method: "NextRange", Request: map[string]any{"tag": tag}, Answer: json.RawMessage(
			`{"prefix":"` + tag + `/","nodeTag":"A","size":"100","token":"AQ==","low":"1","high":"100","logIndex":"101"}`)}
	}
	lease := exchange{Method: "AcquireWorker", EpochAgoMs: ago, Answer: json.RawMessage(`{"worker":3,"token":"AQ==","from":"5","until":"6",` + layout)}
	s := newScript(testCase{Server: []exchange{
		tagged("users"), tagged("orders"), lease, // Its window is renewed at once.
		{Method: "RenewWorker", Answer: json.RawMessage(`{"until":"100","logIndex":"101"}`)},
		{Method: "NextIdentity", Waits: true, Answer: json.RawMessage(seven)},
		lease,
		{Method: "RenewWorker", Answer: json.RawMessage(`{"until":"100","logIndex":"101"}`)},
		{Method: "NextIdentity", Waits: true, Answer: json.RawMessage(seven)},
	}})
	got := pythonProgram(t, `
import signal, sys, threading, idnode
class Soft(Exception):
    pass
def interrupt(*_):
    raise Soft
signal.signal(signal.SIGUSR1, interrupt)
start = threading.Thread.start
def interrupted(begun, call):
    def begin(thread):
        if not thread.name.startswith(("idnode-hilo", "idnode-snowflake")):
            return start(thread)
        threading.Thread.start = start
        if begun:
            start(thread)
        signal.raise_signal(signal.SIGUSR1)
    threading.Thread.start = begin
    try:
        print("not interrupted", call())
    except Soft:
        pass
client = idnode.Client(sys.argv[1:])
for begun, tag in (False, "users"), (True, "orders"):
    ids = client.hilo(tag)
    interrupted(begun, ids.next_id)
    print(ids.next_id())
for begun, pool in (False, "a"), (True, "b"):
    ids = client.snowflake(pool)
    interrupted(begun, ids.next_id)  # In its lease,
    interrupted(False, ids.next_id)  # and its renewal.
    print(ids.parse(ids.next_id()).worker, client.identity("invoices").next())
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "users/1-A\norders/1-A\n3 7\n3 7\n"; got != want {
		t.Errorf("the calls gave\n%swant\n%s", got, want)
	}
}

// TestARangeThatASignalCuts: what a handler raises while a handle goes to its next range leaves a hole at most.
func TestARangeThatASignalCuts(t *testing.T) {
	_, endpoint := startGiver(t)
	got := pythonProgram(t, `
import sys, time, idnode
first, second = (idnode.Client(sys.argv[1:]).hilo("users") for _ in range(2))
first.next(), second.next()
first.next_ids(999)
while not first._core._ahead:
    time.sleep(0.01)
def cut(*_):
    del idnode._hilo.min
    raise KeyboardInterrupt
idnode._hilo.min = cut  # It is called between the range and its number.
try:
    first.next()
except KeyboardInterrupt:
    print(first.next().value not in range(1001, 2001))
`, endpoint)
	if got != "True\n" {
		t.Errorf("the number is the handle's own: %s", got)
	}
}

// TestAnEndedCloseKeepsNobody: a handle whose close was cancelled, or interrupted, is closed. Nobody waits for what it would have done.
func TestAnEndedCloseKeepsNobody(t *testing.T) {
	got := pythonProgram(t, `
import asyncio, idnode.aio
async def main():
    client = idnode.aio.Client(["127.0.0.1:1"], timeout=600)
    users = client.hilo("users")
    number = asyncio.ensure_future(users.next())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(users.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(number, closing, return_exceptions=True)
    await asyncio.wait_for(users.close(), 20)
    print("closed")
asyncio.run(main())
`)
	if got != "closed\n" {
		t.Errorf("the handle is %s", got)
	}
}
