package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonProgram runs a program that has the client, and returns what it wrote.
func pythonProgram(t *testing.T, program string, args ...string) string {
	t.Helper()
	languages[0].need(t)
	cmd := exec.Command("python3", append([]string{"-c", program}, args...)...)
	cmd.Dir = filepath.Join(folder, "python")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestAForkedProcessHasRangesOfItsOwn forks a process that holds a range, in the middle of
// it. The child takes none of its numbers, and does not give them back.
func TestAForkedProcessHasRangesOfItsOwn(t *testing.T) {
	const answer = `{"prefix":"users/","nodeTag":"A","rangeAt":"2026-01-01T00:00:00Z","size":"100","token":"AQ==",`
	s := newScript(testCase{Server: []exchange{
		{Method: "NextRange", Answer: json.RawMessage(answer + `"low":"1","high":"100","logIndex":"101"}`)},
		{Method: "NextRange", Answer: json.RawMessage(answer + `"low":"101","high":"200","logIndex":"102"}`)},
		{Method: "ReturnRange", Request: map[string]any{"low": "101", "high": "200", "last": "103"}},
		{Method: "ReturnRange", Request: map[string]any{"low": "1", "high": "100", "last": "4"}},
	}})
	got := pythonProgram(t, `
import os, sys, idnode
client = idnode.Client([sys.argv[1]])
users = client.hilo("users")
print(users.next_id(), flush=True)
child = os.fork()
if child == 0:
    with client:
        print(*users.next_ids(3), flush=True)
    os._exit(0)
os.waitpid(child, 0)
with client:
    print(*users.next_ids(3))
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "users/1-A\nusers/101-A users/102-A users/103-A\nusers/2-A users/3-A users/4-A\n"; got != want {
		t.Errorf("the processes took\n%swant\n%s", got, want)
	}
}

// TestAForkedProcessHasAWorkerOfItsOwn forks a process that holds a worker.
func TestAForkedProcessHasAWorkerOfItsOwn(t *testing.T) {
	const layout = `"layout":{"unit":"3600s","timeBits":41,"workerBits":10,"sequenceBits":12},"logIndex":"101"}`
	const ago = 19_800_000 // The time is 5 then.
	s := newScript(testCase{Server: []exchange{
		{Method: "AcquireWorker", EpochAgoMs: ago, Answer: json.RawMessage(`{"worker":3,"token":"AAAAAAAAAAM=","from":"5","until":"100",` + layout)},
		{Method: "AcquireWorker", EpochAgoMs: ago, Answer: json.RawMessage(`{"worker":4,"token":"AAAAAAAAAAQ=","from":"5","until":"100",` + layout)},
		{Method: "ReleaseWorker", Request: map[string]any{"worker": 4.0, "token": "AAAAAAAAAAQ=", "next": "6"}},
		{Method: "ReleaseWorker", Request: map[string]any{"worker": 3.0, "token": "AAAAAAAAAAM=", "next": "6"}},
	}})
	got := pythonProgram(t, `
import os, sys, idnode
client = idnode.Client([sys.argv[1]])
orders = client.snowflake("orders")

def make():
    print(*[(p.worker, p.sequence) for p in map(orders.parse, orders.next_ids(2))], flush=True)

make()
child = os.fork()
if child == 0:
    with client:
        make()
    os._exit(0)
os.waitpid(child, 0)
with client:
    make()
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "(3, 0) (3, 1)\n(4, 0) (4, 1)\n(3, 2) (3, 3)\n"; got != want {
		t.Errorf("the processes made\n%swant\n%s", got, want)
	}
}

// TestAPassedLeaseIsForgotten has a clock that is two hours ahead for its first lease. When that has passed,
// the clock is set right; ids do not wait for the old window then.
func TestAPassedLeaseIsForgotten(t *testing.T) {
	const layout = `"layout":{"unit":"3600s","timeBits":41,"workerBits":10,"sequenceBits":12},"logIndex":"101"}`
	const ago = 19_800_000 // The time is 5 then.
	s := newScript(testCase{Server: []exchange{
		{Method: "AcquireWorker", EpochAgoMs: ago, Answer: json.RawMessage(`{"worker":3,"token":"AAAAAAAAAAM=","from":"7","until":"8",` + layout)},
		{Method: "RenewWorker", Error: &refusal{Code: "FailedPrecondition", Reason: "CLOCK_SKEW"}},
		{Method: "NextIdentity", Waits: true, Answer: json.RawMessage(`{"blocks":[{"first":"1","last":"1"}],"logIndex":"101"}`)},
		{Method: "AcquireWorker", Error: &refusal{Code: "ResourceExhausted", Reason: "POOL_FULL"}},
		{Method: "AcquireWorker", EpochAgoMs: ago, Answer: json.RawMessage(`{"worker":4,"token":"AAAAAAAAAAQ=","from":"5","until":"100",` + layout)},
		{Method: "ReleaseWorker", Request: map[string]any{"worker": 4.0, "next": "6"}},
	}})
	got := pythonProgram(t, `
import sys, time, idnode
hour, real, monotonic = 3600 * 10**9, time.time_ns, time.monotonic_ns
with idnode.Client([sys.argv[1]]) as client:
    orders = client.snowflake("orders")
    def make():
        parts = orders.parse(orders.next_id())
        print((parts.worker, parts.sequence))
    time.time_ns = lambda: real() + 2 * hour
    make()
    client.identity("invoices").next()  # After the renewal.
    time.time_ns, time.monotonic_ns = real, lambda: monotonic() + hour
    try:
        orders.next_id()
    except idnode.IdnodeError as error:
        print(error.reason)
    time.monotonic_ns = monotonic
    make()
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "(3, 0)\nPOOL_FULL\n(4, 0)\n"; got != want {
		t.Errorf("the calls gave\n%swant\n%s", got, want)
	}
}

// TestAnAddressThatWasUnusedIsAskedAgain: it may have become another cluster's.
func TestAnAddressThatWasUnusedIsAskedAgain(t *testing.T) {
	answer := json.RawMessage(`{"blocks":[{"first":"1","last":"1"}],"logIndex":"101"}`)
	s := newScript(testCase{Server: []exchange{{Method: "NextIdentity", Answer: answer, Cluster: "another"}}})
	got := pythonProgram(t, `
import sys, idnode
idnode._core.GREETED = idnode._nodes.GREETED = 0.0  # As if no address were used for long.
client = idnode.Client([sys.argv[1]])
print(client.identity("invoices").next())
try:
    client.identity("invoices").next()
except idnode.OtherClusterError as error:
    print(error.reason)
client.close()
`, s.serveHTTP(t, 1)...)
	s.end(t)
	if want := "1\nOTHER_CLUSTER\n"; got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestTheLookUpOfANameIsBounded looks a name up for much longer than a call may take.
func TestTheLookUpOfANameIsBounded(t *testing.T) {
	got := pythonProgram(t, `
import socket, sys, time, idnode

def look_up(*_, **__):
    time.sleep(5)
    raise socket.gaierror("there is no such name")

socket.getaddrinfo = look_up
begin = time.monotonic()
try:
    idnode.Client(["a.example:7402"], timeout=0.5).identity("invoices").next()
except idnode.NoEndpointError:
    print(time.monotonic() - begin < 3)
`)
	if got != "True\n" {
		t.Errorf("the call ended in time: %s", got)
	}
}
