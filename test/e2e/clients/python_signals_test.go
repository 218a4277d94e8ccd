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

// TestAHandlerWithinACallIsRefused: where a signal's handler calls the client within a call of its thread, it would wait for what only that
// call gives back. It gets a RuntimeError at once, also where threads would wait; the call that it interrupts goes on.
func TestAHandlerWithinACallIsRefused(t *testing.T) {
	_, endpoint := startGiver(t)
	got := pythonProgram(t, `
import faulthandler, signal, sys, threading, idnode
faulthandler.dump_traceback_later(60, exit=True)
client = idnode.Client(sys.argv[1:])
users, orders, flakes, invoices = client.hilo("users"), client.hilo("orders"), client.snowflake("flakes"), client.identity("invoices")
users.next_id(), orders.next_id(), flakes.next_id()
def within(owner, name, call, *handled):
    inner, ended = getattr(owner, name), []
    def interrupted(*args, **options):
        if threading.current_thread() is threading.main_thread():
            setattr(owner, name, inner)
            signal.raise_signal(signal.SIGTERM)
        return inner(*args, **options)
    def handle(*_):
        for one in handled:
            try:
                ended.append(one() and "given")
            except RuntimeError as error:
                ended.append("refused" if "a signal's handler" in str(error) else error)
    signal.signal(signal.SIGTERM, handle)
    setattr(owner, name, interrupted)
    print(name, bool(call()), *ended)
def all_users():
    return users.next_ids(2000)
within(idnode._hilo.HiLo, "_at_hand", users.next_id, users.next_id, orders.next_id, client.close)
within(idnode._snowflake.Snowflake, "_at_hand", flakes.next_id, flakes.next_id, client.close)
within(idnode._nodes.Router, "_look", invoices.next, users.next_id, invoices.next, all_users, client.close)
within(idnode._nodes.Node, "_free", invoices.next, users.next_id, invoices.next, all_users, client.close)
within(idnode._core, "HiLo", lambda: client.hilo("more"), lambda: client.hilo("others"), orders.next_id, client.close)
within(idnode._threads.Threads, "spawn", lambda: client.hilo("more").next_id(), lambda: client.hilo("more").next_id())
def stop(*_):
    print("closed", client.close())
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
signal.raise_signal(signal.SIGTERM)
`, endpoint)
	want := `_at_hand True refused given refused
_at_hand True refused refused
_look True given refused refused refused
_free True given refused refused refused
HiLo True refused given refused
spawn True refused
closed None
`
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestAHandlerThatSetsWhatIsWaitedFor closes a handle within the wait for its range, wherever a line of that is.
func TestAHandlerThatSetsWhatIsWaitedFor(t *testing.T) {
	_, endpoint := startGiver(t)
	got := pythonProgram(t, `
import faulthandler, signal, sys, threading, idnode
faulthandler.dump_traceback_later(60, exit=True)
client = idnode.Client(sys.argv[1:])
def handle(*_):
    event.set()
signal.signal(signal.SIGTERM, handle)
line = left = 0
while left <= 0:  # Until the wait has no such line.
    line += 1
    event, left = client._core._runtime.event(), line
    def trace(frame, kind, _):
        global left
        if frame.f_code.co_name == "trace" or threading.current_thread() is not threading.main_thread():
            return None
        left -= 1
        if not left:
            signal.raise_signal(signal.SIGTERM)
        return trace
    sys.settrace(trace)
    idnode._threads._run(event.wait(0.05))
    sys.settrace(None)
print("done" if line > 5 else line)
client.close()
`, endpoint)
	if got != "done\n" {
		t.Errorf("the waits are %s", got)
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
