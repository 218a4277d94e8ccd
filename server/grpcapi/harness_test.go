package grpcapi

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/metrics"
	"github.com/idnode/idnode/server/peer"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
	"github.com/idnode/idnode/test/logbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is everything a service needs, around a real state machine.
type backend struct {
	*fsmtest.Node

	mu   sync.Mutex
	etag uint64
	// last is the last result; alike, if set, that of every proposal.
	last, alike []byte
	// batches are the numbers of operations of each ProposeAll.
	batches []int
}

func newBackend(t testing.TB) *backend {
	t.Helper()
	return &backend{Node: fsmtest.NewNode(t, time.Unix(0, 1_700_000_000_000_000_123), fsmtest.Member("A"))}
}

func (b *backend) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	b.mu.Lock()
	alike := b.alike
	b.mu.Unlock()
	if alike != nil {
		return alike, nil
	}
	answer, err := b.Node.Propose(ctx, operation)
	if err == nil {
		b.set(func(b *backend) { b.last = answer })
	}
	return answer, err
}

func (b *backend) set(change func(*backend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *backend) Has(string) bool { return true }

func (b *backend) NextBlock(_ string, n int) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.etag += uint64(n)
	return b.etag - uint64(n) + 1, nil
}

func (b *backend) Status() service.ClusterStatus {
	return service.ClusterStatus{
		ClusterID: "c", SelfID: "6e6f64652d612d2d2d2d2d2d2d2d2d2d", SelfTag: "A", LeaderTag: "A",
		Term: 3, HasQuorum: true, CommitIndex: 9,
	}
}

func (b *backend) RemoveMember(context.Context, string, bool, *string) (uint64, error) { return 5, nil }

func (b *backend) SetWatcher(context.Context, string, bool, bool, *string) (uint64, error) {
	return 6, nil
}

func (b *backend) Transfer(context.Context, string) (string, error) { return "B", nil }

// rig is a served API and its clients.
type rig struct {
	*backend
	service *service.Service
	health  *Health
	// hangs is why the node hangs; nil if it does not.
	hangs   error
	budget  *budget.Budget
	conn    *grpc.ClientConn
	ids     idnodev1.IdsServiceClient
	cluster idnodev1.ClusterServiceClient
	log     *logbuffer.Buffer
}

func newService(t testing.TB, b *backend) *service.Service {
	t.Helper()
	svc := service.New(service.Config{
		Logger: slog.New(slog.DiscardHandler), CaughtUp: func() bool { return true },
		CallTimeout: service.DefaultCallTimeout, MaxInFlight: service.DefaultMaxInFlight,
		Events: metrics.New("").Service(), ReserveTotal: func() *reserve.Total { return nil },
		Caller:   func(context.Context) admission.Caller { return admission.Caller{} },
		Proposer: b, Linearizer: b, State: b.State, Etags: b, Cluster: b,
		Tag: func() (string, bool) { return "A", true }, Version: "test",
		OwnReserves: func() []reserve.Left {
			return []reserve.Left{{Database: "default", Tag: "orders", Numbers: 96, Lasts: 90 * time.Second}}
		},
	})
	return svc
}

// heldBytes is what a rig may hold for callers, less than a node's, because the race detector takes seconds for more.
const heldBytes = 16 << 20

// serve serves the API over memory until the test ends. register may be nil.
func serve(t testing.TB, cfg Config, register func(*grpc.Server)) *rig {
	t.Helper()
	return serveFrom(t, newBackend(t), cfg, register)
}

func serveFrom(t testing.TB, b *backend, cfg Config, register func(*grpc.Server)) *rig {
	t.Helper()
	r := &rig{backend: b, log: &logbuffer.Buffer{}}
	r.health = NewHealth(func() error { return r.hangs })
	r.service = newService(t, r.backend)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	r.budget = budget.New(budget.Limits{Bytes: heldBytes, Connections: 10})
	connections := peer.NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return r.budget.Open("shop") })
	if cfg.Observer == nil {
		cfg.Observer = quiet{}
	}
	server := NewServer(cfg, connections.Credentials(nil), r.service, r.health)
	if register != nil {
		register(server.Server)
	}
	listener := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	r.conn, err = grpc.NewClient("passthrough:///mem",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		// Windows that grow would take what is not read out of the server.
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(16<<20),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.conn.Close()
		server.Stop()
		if held := r.budget.Held(); held != 0 {
			t.Errorf("%d bytes are held when all have gone", held)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	r.ids, r.cluster = idnodev1.NewIdsServiceClient(r.conn), idnodev1.NewClusterServiceClient(r.conn)
	return r
}

// bounded returns a context that ends before the test's own time limit.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// errorDetails takes an error apart.
func errorDetails(t testing.TB, err error) (code codes.Code, infos []*errdetails.ErrorInfo, fields []string, retry time.Duration) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			infos = append(infos, d)
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration()
		default:
			t.Errorf("an unexpected detail %T", d)
		}
	}
	return st.Code(), infos, fields, retry
}

// wantStatus checks an error's code, its one ErrorInfo and its field.
func wantStatus(t testing.TB, err error, code codes.Code, reason, field string) (retry time.Duration) {
	t.Helper()
	got, infos, fields, retry := errorDetails(t, err)
	if got != code || len(infos) != 1 || infos[0].GetReason() != reason || infos[0].GetDomain() != "idnode" {
		t.Fatalf("%v with %v, want %s %s", err, infos, code, reason)
	}
	if field == "" && len(fields) > 0 || field != "" && !slices.Equal(fields, []string{field}) {
		t.Errorf("fields %v, want %q", fields, field)
	}
	return retry
}

// ProposeAll implements service.Proposer.
func (b *backend) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	b.set(func(b *backend) { b.batches = append(b.batches, len(operations)) })
	return fsmtest.Each(ctx, b.Propose, operations)
}

// quiet is an Observer that tells nobody.
type quiet struct{}

func (quiet) Started(string)                            {}
func (quiet) Handled(string, codes.Code, time.Duration) {}
func (quiet) Exchanged(string, codes.Code)              {}
func (quiet) Received(string)                           {}
func (quiet) Sent(string)                               {}
func (quiet) Refused(string, int)                       {}
