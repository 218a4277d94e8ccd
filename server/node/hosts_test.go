package node

import (
	"net/http"
	"testing"

	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/test/tier"
)

// TestHostNamesOfANodeThatStarts: without its cluster a node answers under its own name,
// that of a member it knew when it was stopped, and that of a balancer it is told.
func TestHostNamesOfANodeThatStarts(t *testing.T) {
	tier.Long(t)
	all := configs(t, "A", "B")
	a, b := all["A"], all["B"]
	a.AdvertiseHTTP, b.HTTPHost = "a.example:7402", []string{"ids.example", ".internal"}
	first := run(t, a)
	n := run(t, b)
	first.ready()
	n.ready()
	n.until("a member's name", func() bool { return n.status("a.example:7402") == http.StatusOK })
	first.stop()
	n.stop()
	b.AdvertiseHTTP = "b.example:7402" // Not known to any node yet.
	n = run(t, b)
	for host, want := range map[string]int{
		"a.example": http.StatusOK, "b.example:7402": http.StatusOK, "IDS.example": http.StatusOK, "evil.example": http.StatusForbidden,
		"host.docker.INTERNAL:7402": http.StatusOK, "internal": http.StatusForbidden, "internal.evil.example": http.StatusForbidden,
	} {
		if got := n.status(host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

// TestHostNamesOfANodeWithoutACluster: it cannot tell which names are the cluster's.
func TestHostNamesOfANodeWithoutACluster(t *testing.T) {
	c := configs(t, "A")["A"]
	c.Peer, c.Join, c.AdvertiseHTTP = nil, []string{freeport.For(t)}, "a.example:7402"
	n := run(t, c)
	for host, want := range map[string]int{"a.example": http.StatusOK, "ids.example": http.StatusServiceUnavailable} {
		if got := n.status(host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

// status is that of a call over HTTP under a host name.
func (r *running) status(host string) int {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.url+"/build/version", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Host = host
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
