package webpage

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/history"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/metrics"
	keeper "github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	selfID      = fsmtest.NodeID("A")
	errNoQuorum = outcome.NewNotApplied(outcome.NoQuorum, errors.New("nobody leads"))
)

// world is a node of three whose operations are applied at once.
type world struct {
	*fsmtest.Node
	t testing.TB
	// admins are the node's administrators; nil if everybody is one.
	admins []string

	mu   sync.Mutex
	etag uint64
	// known are the members that the node knows.
	known []*raftlogv1.Member
	// change is made to the status.
	change  func(*service.ClusterStatus)
	reserve *keeper.Total
	page    *Page
	busiest history.Busiest
}

func newWorld(t testing.TB) *world {
	t.Helper()
	a, b, c := fsmtest.Member("A"), fsmtest.Member("B"), fsmtest.Member("C")
	a.GrpcAddress, a.RaftAddress, a.HttpAddress = "a.example:7400", "a.example:7401", "a.example:7402"
	b.GrpcAddress, b.RaftAddress = "10.0.0.2:7400", "10.0.0.2:7401"
	c.GrpcAddress, c.RaftAddress = "10.0.0.3:7400", "10.0.0.3:7401"
	return &world{Node: fsmtest.NewNode(t, time.Unix(1_800_000_000, 0), a, b, c), t: t, known: membersAt("a.example:7402", "10.0.0.2:7402")}
}

// NextBlock implements service.Etags.
func (w *world) Has(string) bool { return true }

func (w *world) NextBlock(_ string, n int) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.etag += uint64(n)
	return w.etag - uint64(n) + 1, nil
}

// Status implements service.Cluster: node C is out of reach, and B behind. The
// newest two log entries are Raft's own.
func (w *world) Status() service.ClusterStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := service.ClusterStatus{
		ClusterID: hex.EncodeToString(fsmtest.ClusterID), SelfID: hex.EncodeToString(selfID), SelfTag: "A", LeaderTag: "A",
		Term: 3, HasQuorum: true, CommitIndex: w.Index() + 2, Known: w.known, Conditions: map[string]service.Condition{
			"A": {Answer: &peerv1.PingResponse{AppliedIndex: w.Index()}}, "B": {Answer: &peerv1.PingResponse{AppliedIndex: w.Index() - 1}},
		},
	}
	if w.Faults().Fail != nil {
		status.LeaderTag, status.HasQuorum, status.QuorumMissing = "", false, 90*time.Second
	}
	if w.change != nil {
		w.change(&status)
	}
	return status
}

// RemoveMember, SetWatcher and Transfer implement service.Cluster; nothing of the page's own uses them.
func (w *world) RemoveMember(context.Context, string, bool, *string) (uint64, error) {
	return 0, errors.ErrUnsupported
}

func (w *world) SetWatcher(context.Context, string, bool, bool, *string) (uint64, error) {
	return 0, errors.ErrUnsupported
}

func (w *world) Transfer(context.Context, string) (string, error) { return "", errors.ErrUnsupported }

// seed begins an identity.
func (w *world) seed(name string, value int64) {
	w.Must(op.Envelope{Database: "default"}, &raftlogv1.IdentitySeed{Name: name, Value: value})
}

// loseQuorum makes the cluster refuse everything, from now on.
func (w *world) loseQuorum() {
	w.Set(func(f *fsmtest.Faults) { f.Fail, f.Unreadable = errNoQuorum, errNoQuorum })
}

// newServer returns the node's HTTP port with the page on it.
func (w *world) newServer(cfg httpapi.Config) *httpapi.Server {
	w.t.Helper()
	svc := service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events:   metrics.New("").Service(),
		Caller:   func(context.Context) admission.Caller { return admission.Caller{} },
		Proposer: w, Linearizer: w, State: w.State, Etags: w, Cluster: w, Version: "v1", Guarded: len(w.admins) > 0, Admins: w.admins,
		Hosts:        []string{"ids.example"},
		Tag:          func() (string, bool) { return "A", true },
		ReserveTotal: func() *keeper.Total { return w.reserve },
		OwnEtags: func() []etags.Progress {
			return []etags.Progress{{Database: "shop", Last: 1 << 62, Reserved: 1<<62 + 1, Ceiling: 1<<62 + 2}, {Database: "default", Reserved: 9}}
		},
	})
	cfg.Logger, cfg.Refused = slog.New(slog.DiscardHandler), func(string, int) {}
	server := httpapi.NewServer(cfg, svc)
	public := jsonapi.New(&grpcapi.Server{}, svc.CheckHost)
	w.page = New(Config{
		Service: svc, Public: public, Issued: func() map[string]uint64 { return map[string]uint64{"guid": 7} },
		Recent: func() *peerv1.Figures { return &peerv1.Figures{CommitP99Micros: 900} }, Busiest: &w.busiest,
	})
	w.page.Handle(server.Handle)
	return server
}

// send sends a request as the page does, with further headers as pairs.
func send(s http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:7402"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// wantJSON compares an answer with JSON text, whatever its order and spaces; of
// objects only the keys that want has.
func wantJSON(t *testing.T, w *httptest.ResponseRecorder, status int, want string) {
	t.Helper()
	var got, wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if failure, is := got.(map[string]any); is {
		readDetails(failure)
	}
	if d := cmp.Diff(wanted, only(got, wanted)); d != "" || w.Code != status {
		t.Errorf("status %d, want %d (-want +got):\n%s", w.Code, status, d)
	}
}

// readDetails puts the reason and the field of an error where its message is.
func readDetails(failure map[string]any) {
	details, _ := failure["details"].([]any)
	for _, detail := range details {
		debug, _ := detail.(map[string]any)["debug"].(map[string]any)
		if reason, is := debug["reason"]; is {
			failure["reason"] = reason
		}
		if violations, is := debug["fieldViolations"].([]any); is {
			failure["field"] = violations[0].(map[string]any)["field"]
		}
	}
}

// only returns got without the keys of objects that want does not have.
func only(got, want any) any {
	if list, wanted := asLists(got, want); wanted != nil {
		for i := range list {
			list[i] = only(list[i], wanted[i])
		}
		return list
	}
	object, ok := got.(map[string]any)
	wanted, both := want.(map[string]any)
	if !ok || !both {
		return got
	}
	kept := map[string]any{}
	for key, value := range wanted {
		if has, there := object[key]; there {
			kept[key] = only(has, value)
		}
	}
	return kept
}

// asLists returns two lists of the same length, or nil.
func asLists(got, want any) (list, wanted []any) {
	list, _ = got.([]any)
	wanted, _ = want.([]any)
	if len(list) != len(wanted) {
		return nil, nil
	}
	return list, wanted
}

// membersAt are members with these HTTP addresses.
func membersAt(addresses ...string) (all []*raftlogv1.Member) {
	for _, address := range addresses {
		all = append(all, &raftlogv1.Member{HttpAddress: address})
	}
	return all
}
