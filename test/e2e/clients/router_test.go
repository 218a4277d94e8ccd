package clients

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

// program runs a text in a language with arguments, and returns the program's output.
type program = func(t *testing.T, text string, args ...string) string

// members is a cluster whose nodes tell of its leader and its members.
type members struct {
	mu      sync.Mutex
	term    int
	leader  string   // An address, which each answer names in its headers.
	told    []string // Addresses of members, in GetStatus.
	calls   []string // The addresses that were asked for an identity.
	stopped map[string]bool
}

// serve starts a node of a cluster, and returns its address. It runs before where it answers an identity.
func (m *members) serve(t *testing.T, cluster string, before func()) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.answer(w, r, cluster, before) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func (m *members) answer(w http.ResponseWriter, r *http.Request, cluster string, before func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped[r.Host] {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Idnode-Cluster-Id", cluster)
	if path.Base(r.URL.Path) == "GetStatus" {
		var told []string
		for _, one := range m.told {
			told = append(told, fmt.Sprintf(`{"tag":"A","httpAddress":%q,"role":"ROLE_FOLLOWER"}`, one))
		}
		_, _ = fmt.Fprintf(w, `{"clusterId":%q,"self":{"tag":"A","httpAddress":%q},"leaderTag":"B","hasQuorum":true,"appliedIndex":"100","members":[%s]}`,
			cluster, r.Host, strings.Join(told, ","))
		return
	}
	m.calls = append(m.calls, r.Host)
	before()
	w.Header().Set("Idnode-Term", fmt.Sprint(m.term))
	w.Header().Set("Idnode-Leader-Address", m.leader)
	giveSeven(w, r)
}

// followsTheLeader: the text's three calls follow the leader of the greatest term that an answer has named.
func followsTheLeader(t *testing.T, run program, text string) {
	t.Helper()
	m := &members{}
	var endpoints []string
	before := func() {
		// The first answer names the third node. Then it says what was before.
		m.term, m.leader = 7, endpoints[2]
		if len(m.calls) > 1 {
			m.term, m.leader = 6, endpoints[0]
		}
	}
	for range 3 {
		endpoints = append(endpoints, m.serve(t, "c", before))
	}
	run(t, text, endpoints...)
	if want := []string{endpoints[0], endpoints[2], endpoints[2]}; !slices.Equal(m.calls, want) {
		t.Errorf("the calls went to %v, want %v", m.calls, want)
	}
}

// learnsAddresses gives the text an endpoint that answers some calls before it is gone. The output has the three nodes, of which
// the second is of another cluster.
func learnsAddresses(t *testing.T, calls int, run program, text, want string) {
	t.Helper()
	m := &members{stopped: make(map[string]bool)}
	var nodes []string
	before := func() {
		if len(m.calls) == calls {
			m.stopped[nodes[0]] = true
			m.told = nodes[1:]
		}
	}
	for _, cluster := range []string{"c", "other", "c"} {
		nodes = append(nodes, m.serve(t, cluster, before))
	}
	m.told = append(slices.Clone(nodes), "127.0.0.1:1", "nowhere") // The first is removed later, the second is no address.
	if got, want := run(t, text, nodes...), fmt.Sprintf(want, nodes[0], nodes[1], nodes[2]); got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
	if slices.Contains(m.calls, nodes[1]) {
		t.Errorf("the calls went to %v, of which %s is of another cluster", m.calls, nodes[1])
	}
}

// takesOtherEndpoints: the text's first call goes to the first node, and so many more to the second.
func takesOtherEndpoints(t *testing.T, run program, text, want string, more int) {
	t.Helper()
	m := &members{}
	nodes := []string{m.serve(t, "c", func() {}), m.serve(t, "c", func() {})}
	got := run(t, text, nodes...)
	if calls := append(nodes[:1:1], slices.Repeat(nodes[1:], more)...); got != want || !slices.Equal(m.calls, calls) {
		t.Errorf("the calls went to %v, want %v; it says %s", m.calls, calls, got)
	}
}

// renewing serves with certificates of an authority. It returns its address, the folders of this authority's certificates and of
// the next one's, and the URL that makes it serve with those. Each call has a connection of its own.
func renewing(t *testing.T) (args []string) {
	t.Helper()
	old, renewed := harness.Certificates(t, "A"), harness.Certificates(t, "A")
	configs := []*tls.Config{trusting(t, old), trusting(t, renewed)}
	var current atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		greeting(giveSeven)(w, r)
	}))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return configs[current.Load()], nil }}
	server.StartTLS()
	t.Cleanup(server.Close)
	turn := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { current.Store(1) }))
	t.Cleanup(turn.Close)
	return []string{strings.TrimPrefix(server.URL, "https://"), old, renewed, turn.URL}
}
