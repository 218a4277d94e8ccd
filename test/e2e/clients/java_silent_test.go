package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/server/service"
)

// TestJavaLeavesASilentLeader: a leader stops to say anything, and another leads, whose nodes say so late. A call
// that waits for the old one goes to the new one as soon as they have, and not when the time of its try is over.
func TestJavaLeavesASilentLeader(t *testing.T) {
	for _, late := range []time.Duration{0, 250 * time.Millisecond, 450 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			var silent atomic.Bool
			endpoints := make([]string, 3)
			for i, tag := range []string{"A", "B", "C"} {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the client leaves.
					if path.Base(r.URL.Path) == "silence" {
						silent.Store(true)
						return
					}
					leader := "A"
					if silent.Load() {
						leader = "B"
						if tag == "A" {
							neverAnswer(w, r)
							return
						}
						if path.Base(r.URL.Path) == "GetStatus" {
							<-time.After(late)
						}
					}
					leads(w, r, leader, endpoints[leader[0]-'A'])
				}))
				t.Cleanup(server.Close)
				endpoints[i] = strings.TrimPrefix(server.URL, "http://")
			}
			got := javaProgram(t, `
try (var client = new IdnodeClient(List.of(args), new IdnodeConfig().withTimeout(Duration.ofMinutes(1)).withTryTimeout(Duration.ofSeconds(30)))) {
  client.identity("invoices").next();
  new java.net.URL("http://" + args[0] + "/silence").openStream().close();
  var calls = new ArrayList<CompletableFuture<Long>>();
  var began = System.nanoTime();
  for (var i = 0; i < 16; i++) calls.add(client.async(client.identity("invoices")::next));
  calls.forEach(CompletableFuture::join);
  say((System.nanoTime() - began) / 1_000_000);
}`, endpoints...)
			took, err := strconv.Atoi(strings.TrimSpace(got))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d ms", took)
			if took > 10_000 { // A third of a try.
				t.Errorf("the calls took %d ms", took)
			}
		})
	}
}

// leads answers as a node of a cluster that knows its leader. A leads in the first term, B in the second.
func leads(w http.ResponseWriter, r *http.Request, leader, address string) {
	w.Header().Set(service.ClusterIDHeader, "c")
	w.Header().Set(service.TermHeader, map[string]string{"A": "1", "B": "2"}[leader])
	w.Header().Set(service.LeaderHeader, address)
	if path.Base(r.URL.Path) != "GetStatus" {
		giveSeven(w, r)
		return
	}
	_, _ = io.WriteString(w, `{"clusterId":"c","self":{"tag":"A"},"hasQuorum":true,"appliedIndex":"100","members":[]}`)
}
