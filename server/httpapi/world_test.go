package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestMain(m *testing.M) {
	// net/http waits half a second before it closes a connection on which it has
	// refused what was still being sent.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// world is a cluster of three nodes, with a clock that stands still: operations are
// applied at once, whichever node they come from.
type world struct {
	*fsmtest.Node
	t testing.TB

	mu sync.Mutex
	// known are the members that nodes know.
	known []*raftlogv1.Member
	// voterTags are what nodes believe of Raft's configuration.
	voterTags []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	n := fsmtest.NewNode(t, time.Date(2026, 11, 21, 13, 15, 49, 486_795_279, time.UTC), member("A"), member("B"), member("C"))
	return &world{Node: n, t: t, known: membersAt("a:7402", "b.example:7402", "c:7402")}
}

func member(tag string) *raftlogv1.Member {
	m := fsmtest.Member(tag)
	m.HttpAddress = strings.ToLower(tag) + ":7402"
	return m
}

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// Faults of a world.
var (
	errNoQuorum = outcome.NewNotApplied(outcome.NoQuorum, errors.New("nobody leads"))
	errUnknown  = outcome.NewUnknown(outcome.Deadline, context.DeadlineExceeded)
)

// nodeView is one node's view of the cluster.
type nodeView struct {
	*world
	tag string
}

// Status implements service.Cluster.
func (p nodeView) Status() service.ClusterStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := service.ClusterStatus{
		ClusterID: "c1", SelfID: hex.EncodeToString(fsmtest.NodeID(p.tag)), SelfTag: p.tag, Term: 3, LeaderTag: "B", HasQuorum: true,
		VoterTags: p.voterTags, Known: p.known,
	}
	if p.Faults().Fail != nil {
		status.LeaderTag, status.HasQuorum = "", false
	}
	return status
}

func (nodeView) RemoveMember(context.Context, string, bool, *string) (uint64, error) {
	return 0, errors.ErrUnsupported
}

func (nodeView) SetWatcher(context.Context, string, bool, bool, *string) (uint64, error) {
	return 0, errors.ErrUnsupported
}

func (nodeView) Transfer(context.Context, string) (string, error) { return "", errors.ErrUnsupported }

// NextBlock implements service.Etags.
func (nodeView) Has(string) bool { return true }

func (nodeView) NextBlock(string, int) (uint64, error) { return 0, errors.ErrUnsupported }

// newServer returns the HTTP port of the node called tag.
func (w *world) newServer(tag string, cfg Config, prefix string) *Server {
	w.t.Helper()
	p := nodeView{w, tag}
	svc := service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events: metrics.New("").Service(), ReserveTotal: func() *reserve.Total { return nil },
		Caller:   func(context.Context) admission.Caller { return admission.Caller{} },
		Proposer: w, Linearizer: w, State: w.State, Etags: p, Cluster: p,
		Tag: func() (string, bool) { return tag, true }, ServerPrefix: prefix, Version: "v1", Hosts: []string{"a.example:7402", "ids.example"},
	})
	cfg.WriteTimeout = time.Minute
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Refused == nil {
		cfg.Refused = func(string, int) {}
	}
	return NewServer(cfg, svc)
}

// do sends one request, with headers as pairs.
func do(s http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	// Straight into the request: httptest would refuse what clients do not escape.
	r := httptest.NewRequest(method, "/", nil)
	r.Host, r.RequestURI = "a:7402", target
	path, query, _ := strings.Cut(target, "?")
	r.URL.RawQuery = query
	r.URL.Path, _ = url.PathUnescape(path)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// fail makes proposals and linearizable reads fail; with lost, proposals are applied all the same.
func (w *world) fail(err error, lost bool) {
	w.Set(func(f *fsmtest.Faults) { f.Fail, f.Unreadable, f.Lost = err, err, lost })
}

// membersAt are members with these HTTP addresses.
func membersAt(addresses ...string) (all []*raftlogv1.Member) {
	for _, address := range addresses {
		all = append(all, &raftlogv1.Member{HttpAddress: address})
	}
	return all
}
