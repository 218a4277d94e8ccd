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
for id in "", "", "mine", idnode.RequestId("mine", 7):
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

// TestPythonLearnsNoOddAddresses: an address that is written in another way is not learnt anew in each look, and one that is
// none ends no call.
func TestPythonLearnsNoOddAddresses(t *testing.T) {
	for _, odd := range []string{"localhost:0PORT", "http://b:7402", "b:0", "b:99999"} {
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
import sys, idnode
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
