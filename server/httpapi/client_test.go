package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/service"
)

// decode returns the body of an answer that must have this status.
func decode[T any](t *testing.T, w *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != status {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// TestSizes asks for the size of every case of the policy, with the time of the
// last range as a client would send it.
func TestSizes(t *testing.T) {
	data, err := os.ReadFile("testdata/hilo-size.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct {
			LastSize int64    `json:"last_size"`
			Idle     *float64 `json:"idle_s"`
			Size     int64    `json:"size"`
		}
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors.Cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	w := newWorld(t)
	s := w.newServer("A", Config{}, "")
	for i, c := range vectors.Cases {
		target := fmt.Sprintf("/databases/default/hilo/next?tag=t%d&lastBatchSize=%d", i, c.LastSize)
		if c.Idle != nil {
			// Clients cut the time off at 100 ns; an idle time just above a minute must stay so.
			at := w.Now().Add(-time.Duration(*c.Idle * float64(time.Second)))
			target += "&lastRangeAt=" + at.Format(time.RFC3339Nano)
		}
		if got := decode[rangeAnswer](t, do(s, http.MethodGet, target), http.StatusCreated); got.LastSize != c.Size ||
			got.High-got.Low+1 != c.Size {
			t.Errorf("%s: %+v, want the size %d", target, got, c.Size)
		}
	}
}

// TestTimes: a range 45 s ago keeps the size, in whatever form the time comes;
// one read wrong by an hour would halve it.
func TestTimes(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "") // It is 13:15:49.486795279.
	for i, at := range []string{
		"2026-11-21T13:15:04Z", "2026-11-21T13:15:04.4Z", "2026-11-21T13:15:04.48Z", "2026-11-21T13:15:04.486Z",
		"2026-11-21T13:15:04.4867Z", "2026-11-21T13:15:04.48679Z", "2026-11-21T13:15:04.486795Z", "2026-11-21T13:15:04.4867952Z",
		"2026-11-21T13:15:04.48679527Z", "2026-11-21T13:15:04.486795279Z",
		"2026-11-21T13:15:04", "2026-11-21T13:15:04.4867952", "2026-11-21t13:15:04.4867952z", "2026-11-21 13:15:04.4867952",
		"2026-11-21T15:15:04.4867952%2B02:00", "2026-11-21T15:15:04.4867952+02:00", "2026-11-21T09:45:04.4867952-03:30",
		"2026-11-21T13:15:04-00:00",
	} {
		target := fmt.Sprintf("/databases/default/hilo/next?tag=t%d&lastBatchSize=100&lastRangeAt=%s", i, at)
		if got := decode[rangeAnswer](t, do(s, http.MethodGet, target), http.StatusCreated); got.LastSize != 100 {
			t.Errorf("%s: the size is %d, want 100", at, got.LastSize)
		}
	}
	// What is no time is ignored: the size neither grows nor shrinks.
	for i, at := range []string{
		"2026-11-21", "2026-11-21T13:15", "2026-11-21T13:15:04.", "2026-11-21T13:15:04.Z", "2026-11-21T24:00:00Z", "2026-02-30T00:00:00Z",
		"2026-11-21T13:15:04ZZ", "2026-11-21T13:15:04+0200", "2026-11-21T13:15:04+25:00", "1795266904", "/Date(0)/", strings.Repeat("9", 5000),
	} {
		target := fmt.Sprintf("/databases/default/hilo/next?tag=bad%d&lastBatchSize=100&lastRangeAt=%s", i, url.QueryEscape(at))
		if got := decode[rangeAnswer](t, do(s, http.MethodGet, target), http.StatusCreated); got.LastSize != 100 {
			t.Errorf("%.50s: the size is %d, want 100", at, got.LastSize)
		}
	}
}

// TestServerPrefix: a node with a server prefix gives ranges without a tag.
func TestServerPrefix(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "North")
	got := decode[rangeAnswer](t, do(s, http.MethodGet, "/databases/default/hilo/next?tag=orders"), http.StatusCreated)
	if got.Prefix != "orders/North/" || got.ServerTag != "" {
		t.Errorf("%+v", got)
	}
}

// TestLongestNames: names of the greatest length come through, longer ones are
// refused in words.
func TestLongestNames(t *testing.T) {
	s := newWorld(t).newServer("A", Config{}, "")
	for n, status := range map[int]int{2000: http.StatusOK, 2001: http.StatusBadRequest, 14_000: http.StatusBadRequest} {
		w := do(s, http.MethodPost, "/databases/default/identity/next?name="+strings.Repeat("x", n))
		if w.Code != status {
			t.Errorf("a name of %d bytes: %d %.200s", n, w.Code, w.Body)
		}
	}
}

// TestManyIdentities lists more than one page of them, and parts that begin and
// end inside of pages.
func TestManyIdentities(t *testing.T) {
	const n = 2*service.MaxPageSize + 500
	s := newWorld(t).newServer("A", Config{}, "")
	for i := range n {
		do(s, http.MethodPost, fmt.Sprintf("/databases/default/identity/seed?name=n%05d&value=%d", i, i))
	}
	for _, c := range []struct {
		query      string
		first, all int
	}{{"", 0, n}, {"?start=999&pageSize=3", 999, 3}, {"?start=1000", 1000, n - 1000}, {
		"?start=1500&pageSize=1000", 1500,
		1000,
	}, {"?start=2499", 2499, 1}} {
		got := decode[map[string]int](t, do(s, http.MethodGet, "/databases/default/debug/identities"+c.query), http.StatusOK)
		if len(got) != c.all || got[fmt.Sprintf("n%05d|", c.first)] != c.first || got[fmt.Sprintf("n%05d|", c.first+c.all-1)] != c.first+c.all-1 {
			t.Errorf("%q: %d identities, want %d from %d on", c.query, len(got), c.all, c.first)
		}
	}
}

// TestTopologyIsOfTheMembers: it is the same on all nodes, whatever each knows of the
// moment, and its etag rises with each change of the members, and only then.
func TestTopologyIsOfTheMembers(t *testing.T) {
	w := newWorld(t)
	announce := func(address string) proto.Message {
		m := member("A")
		m.HttpAddress = address
		return &raftlogv1.MemberAnnounce{Member: m}
	}
	etag := int64(w.Index())
	for i, step := range []struct {
		payload proto.Message
		changes bool
	}{
		{announce("a:7402"), false},
		{announce("a:7403"), true},
		{&raftlogv1.MemberRemove{Tag: "B"}, true},
		{announce("a:7403"), false},
	} {
		w.Must(op.Envelope{}, step.payload)
		if step.changes {
			etag = int64(w.Index())
		}
		said := map[string]bool{}
		for _, tag := range []string{"A", "C"} {
			w.set(func(w *world) { w.voterTags = []string{tag} }) // Raft's configuration is on its way.
			got := do(w.newServer(tag, Config{}, ""), http.MethodGet, "/topology?name=shop")
			said[got.Body.String()] = true
			if topology := decode[struct{ Etag int64 }](t, got, http.StatusOK); topology.Etag != etag {
				t.Errorf("step %d: %s says the etag %d, want %d", i, tag, topology.Etag, etag)
			}
		}
		if len(said) != 1 {
			t.Errorf("step %d: %v", i, said)
		}
	}
}

// TestRangesThatDoublesCannotCount: JavaScript would give ids twice from them, so they
// are kept from it.
func TestRangesThatDoublesCannotCount(t *testing.T) {
	w := newWorld(t)
	raise := &raftlogv1.HiLoSet{Tag: "orders", Max: maxExact - 32}
	w.Must(op.Envelope{Database: "shop"}, raise)
	const next = "/databases/shop/hilo/next?tag=orders"
	s := w.newServer("A", Config{}, "")
	if got := decode[rangeAnswer](t, do(s, http.MethodGet, next), http.StatusCreated); got.High != maxExact {
		t.Fatalf("%+v, want a range to 2^53", got)
	}
	got := decode[problem](t, do(s, http.MethodGet, next), http.StatusBadRequest)
	if got.Type != overflowException || !strings.Contains(got.Message, "2^53") {
		t.Errorf("%+v", got)
	}
}
