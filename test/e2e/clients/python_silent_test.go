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

// TestPythonLeavesASilentLeaderForSlowOthers: a leader that stands still is left as soon as the others, which need 250 ms
// to say who leads, have said it, and not only when the time of the try is over.
func TestPythonLeavesASilentLeaderForSlowOthers(t *testing.T) {
	var frozen atomic.Bool
	node := func(tag string, delay time.Duration) string {
		server := httptest.NewServer(greeting(giveSeven))
		inner := server.Config.Handler
		server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			leader := "A"
			switch {
			case frozen.Load() && tag == "A":
				<-r.Context().Done()
				return
			case frozen.Load():
				leader = "B"
			}
			if path.Base(r.URL.Path) != "GetStatus" {
				inner.ServeHTTP(w, r)
				frozen.Store(true)
				return
			}
			if frozen.Load() {
				time.Sleep(delay) // As a busy or far node.
			}
			w.Header().Set("Idnode-Cluster-Id", "c")
			_, _ = io.WriteString(w, `{"clusterId":"c","self":{"tag":"`+tag+`"},"leaderTag":"`+leader+`","hasQuorum":true,"appliedIndex":"100"}`)
		})
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	endpoints := []string{node("A", 0), node("B", 250*time.Millisecond), node("C", 250*time.Millisecond)}
	for _, kind := range []string{"threads", "asyncio"} {
		t.Run(kind, func(t *testing.T) {
			frozen.Store(false)
			got := pythonProgram(t, `
import asyncio, sys, time, idnode, idnode.aio
options = {"try_timeout": 10, "timeout": 10, "cluster_id": "c"}
def judge(began):
    print(time.monotonic() - began < 5)
def threads():
    with idnode.Client(sys.argv[2:], **options) as client:
        client.identity("a").next()
        began = time.monotonic()
        client.identity("a").next()
        judge(began)
async def tasks():
    async with idnode.aio.Client(sys.argv[2:], **options) as client:
        await client.identity("a").next()
        began = time.monotonic()
        await client.identity("a").next()
        judge(began)
threads() if sys.argv[1] == "threads" else asyncio.run(tasks())
`, append([]string{kind}, endpoints...)...)
			if got != "True\n" {
				t.Errorf("the call waited for the silent leader: %s", got)
			}
		})
	}
}
