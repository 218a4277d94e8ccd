package jsonapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/grpcapi"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
	"github.com/idnode/idnode/test/logbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a node whose cluster is nothing but its replicated state: operations are
// applied at once. Its API is served over gRPC and HTTP.
type world struct {
	*fsmtest.Node
	t       testing.TB
	service *service.Service
	grpc    *grpcapi.Server
	budget  *budget.Budget
	log     logbuffer.Buffer
	// url is that of the HTTP port.
	url    string
	client http.Client

	mu sync.Mutex
	// caller is the principal of all calls.
	caller string
	// counted is what the metrics count: calls that ended, and reasons of refusals.
	counted []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		Node: fsmtest.NewNode(t, time.Unix(1_800_000_000, 0), fsmtest.Member("A")), t: t,
		caller: "dns:ops", budget: budget.New(budget.Limits{Bytes: 16 << 20, Connections: 10}),
	}
	w.Must(op.Envelope{}, &raftlogv1.MemberAnnounce{Member: fsmtest.Member("A")})
	w.service = service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events: metrics.New("").Service(), ReserveTotal: func() *reserve.Total { return nil },
		OwnReserves: func() []reserve.Left { return nil },
		Proposer:    w, Linearizer: w, State: w.State, Etags: w, Cluster: w, Version: "test",
		Tag:    func() (string, bool) { return "A", true },
		Caller: func(context.Context) admission.Caller { return admission.Caller{Principal: w.principal()} },
	})
	connections := peer.NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return w.budget.Open("shop") })
	cfg := grpcapi.Config{Observer: observer{w}, Logger: slog.New(slog.DiscardHandler)}
	w.grpc = grpcapi.NewServer(cfg, connections.Credentials(nil), w.service,
		grpcapi.NewHealth(func() error { return nil }))
	w.serve()
	t.Cleanup(func() {
		w.grpc.Stop()
		if held := w.budget.Held(); held != 0 {
			t.Errorf("%d bytes are held when all calls have ended", held)
		}
	})
	return w
}

// secured is the header of a request that counts as one over TLS.
const secured = "Test-Secured"

// serve serves the HTTP port.
func (w *world) serve() {
	w.t.Helper()
	api := New(w.grpc, w.service.CheckHost)
	shop := w.budget.Open("shop")
	server := httpapi.NewServer(httpapi.Config{
		Answer: api.Answer, Principal: func(tls.ConnectionState) string { return w.principal() },
		Held: func(net.Conn) *budget.Connection { return shop }, Refused: func(reason string, _ int) { w.count(reason) },
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), WriteTimeout: time.Minute,
		Around: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get(secured) != "" {
					r.TLS = &tls.ConnectionState{}
				}
				next.ServeHTTP(rw, r)
			})
		},
	}, w.service)
	api.Handle(server.Handle)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	w.url, w.client.Transport = "http://"+listener.Addr().String(), &http.Transport{DisableCompression: true}
	w.t.Cleanup(func() {
		w.client.CloseIdleConnections()
		if err := errors.Join(server.Shutdown(context.Background()), <-served); err != nil {
			w.t.Errorf("serve: %v", err)
		}
	})
}

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *world) principal() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.caller
}

func (w *world) count(what string) {
	w.set(func(w *world) { w.counted = append(w.counted, what) })
}

// guard gives all rights to ops alone.
func (w *world) guard() {
	w.t.Helper()
	ops := rights.Role{Name: "operators", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.All}}}
	ctx := admission.WithCaller(context.Background(), admission.Caller{Principal: "dns:ops"})
	if _, err := w.service.SetRoles(ctx, &idnodev1.SetRolesRequest{Table: service.Roles{Roles: []rights.Role{ops}}.Message()}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) NextBlock(string, int) (uint64, error) { return 1, nil }

func (w *world) Has(string) bool { return true }

func (w *world) Status() service.ClusterStatus {
	return service.ClusterStatus{
		ClusterID: "c", SelfID: "6e6f64652d612d2d2d2d2d2d2d2d2d2d", SelfTag: "A", LeaderTag: "A", Term: 3,
		HasQuorum: true, Known: []*raftlogv1.Member{{HttpAddress: "a.example:7402"}},
	}
}

func (w *world) RemoveMember(context.Context, string, bool, *string) (uint64, error) { return 5, nil }

func (w *world) SetWatcher(context.Context, string, bool, bool, *string) (uint64, error) {
	return 6, nil
}

func (w *world) Transfer(context.Context, string) (string, error) { return "B", nil }

// observer keeps what the metrics count.
type observer struct{ w *world }

func (observer) Started(string)                                    {}
func (o observer) Handled(m string, c codes.Code, _ time.Duration) { o.w.count(m + " " + c.String()) }
func (observer) Exchanged(string, codes.Code)                      {}
func (observer) Received(string)                                   {}
func (observer) Sent(string)                                       {}
func (o observer) Refused(reason string, _ int)                    { o.w.count(reason) }

// httpAnswer is one over HTTP.
type httpAnswer struct {
	status int
	header http.Header
	body   string
	// What an error has.
	Code, Message string
	Details       []struct {
		Type, Value string
		Debug       struct {
			Reason, RetryDelay string
			FieldViolations    []struct{ Field string }
		}
	}
}

// reason is that of the error; "" if there is none.
func (a httpAnswer) reason() string {
	if len(a.Details) == 0 {
		return ""
	}
	return a.Details[0].Debug.Reason
}

// field is that of the error; "" if there is none.
func (a httpAnswer) field() string {
	for _, d := range a.Details {
		for _, v := range d.Debug.FieldViolations {
			return v.Field
		}
	}
	return ""
}

// post makes a call as a caller with a certificate does, with further headers as pairs.
func (w *world) post(method, body string, headers ...string) httpAnswer {
	w.t.Helper()
	return w.send(http.MethodPost, method, body, append([]string{secured, "yes"}, headers...)...)
}

func (w *world) send(verb, method, body string, headers ...string) httpAnswer {
	w.t.Helper()
	r, err := http.NewRequest(verb, w.url+method, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			r.Host = headers[i+1]
		case "Transfer-Encoding":
			r.ContentLength = -1
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := httpAnswer{status: res.StatusCode, header: res.Header, body: string(text)}
	if verb == http.MethodHead {
		return a
	}
	if err := json.Unmarshal(text, &a); err != nil || res.Header.Get("Content-Type") != "application/json" {
		w.t.Errorf("%s: %v: %v: %s", method, err, res.Header, text)
	}
	return a
}

// dial returns a connection to the API over gRPC.
func (w *world) dial() *grpc.ClientConn {
	w.t.Helper()
	listener := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- w.grpc.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = conn.Close()
		w.grpc.Stop()
		if err := <-served; err != nil {
			w.t.Errorf("serve: %v", err)
		}
	})
	return conn
}
