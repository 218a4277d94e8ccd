package grpcapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/test/fsmtest"
)

// fakeQuorum changes when told.
type fakeQuorum struct {
	has     atomic.Bool
	changes chan struct{}
}

func (q *fakeQuorum) Ready() bool                    { return q.has.Load() }
func (q *fakeQuorum) QuorumChanges() <-chan struct{} { return q.changes }

func (q *fakeQuorum) set(has bool) {
	q.has.Store(has)
	q.changes <- struct{}{}
}

// TestHealth watches both names while the quorum comes and goes, and at the stop.
func TestHealth(t *testing.T) {
	r := serve(t, Config{}, nil)
	quorum := &fakeQuorum{changes: make(chan struct{})}
	ctx, cancel := context.WithCancel(bounded(t))
	followed := make(chan struct{})
	go func() { defer close(followed); r.health.Follow(ctx, quorum) }()

	const serving, notServing = healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING
	client := healthv1.NewHealthClient(r.conn)
	watch := func(name string) func(healthv1.HealthCheckResponse_ServingStatus) {
		stream, err := client.Watch(bounded(t), &healthv1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		return func(want healthv1.HealthCheckResponse_ServingStatus) {
			t.Helper()
			if res, err := stream.Recv(); err != nil || res.GetStatus() != want {
				t.Errorf("%q: %v %v, want %s", name, res, err, want)
			}
		}
	}
	server, ids, live := watch(""), watch("idnode.v1.IdsService"), watch(LiveService)
	server(notServing)
	ids(notServing)
	live(serving)
	for _, has := range []bool{true, false, true} {
		quorum.set(has)
		want := notServing
		if has {
			want = serving
		}
		server(want)
		ids(want)
	}
	for _, tc := range []struct {
		hangs error
		want  healthv1.HealthCheckResponse_ServingStatus
	}{{errors.New("raft stands still"), notServing}, {nil, serving}} {
		r.hangs = tc.hangs
		res, err := client.Check(bounded(t), &healthv1.HealthCheckRequest{Service: LiveService})
		if err != nil || res.GetStatus() != tc.want {
			t.Errorf("%v: %v %v, want %s", tc.hangs, res, err, tc.want)
		}
	}
	r.health.Stop()
	server(notServing)
	ids(notServing)
	quorum.set(true)
	cancel()
	<-followed
	for name, want := range map[string]healthv1.HealthCheckResponse_ServingStatus{
		"": notServing, "idnode.v1.IdsService": notServing, LiveService: serving,
	} {
		res, err := client.Check(bounded(t), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || res.GetStatus() != want {
			t.Errorf("%q after the stop: %v %v, want %s", name, res, err, want)
		}
	}
	if _, err := client.Check(bounded(t), &healthv1.HealthCheckRequest{Service: "nonsense"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown name: %v", err)
	}
}

var wantServices = []string{"grpc.health.v1.Health", "idnode.v1.ClusterService", "idnode.v1.IdsService", "peer.v1.MemberService"}

// TestReflection lists the services by both versions of the protocol, one that
// was registered later included.
func TestReflection(t *testing.T) {
	r := serve(t, Config{}, func(s *grpc.Server) { peerv1.RegisterMemberServiceServer(s, noisyPeer{}) })
	// The two versions have the same messages under different names, so the
	// newer ones do for both.
	for _, version := range []string{"v1", "v1alpha"} {
		t.Run(version, func(t *testing.T) {
			desc := &reflectionv1.ServerReflection_ServiceDesc.Streams[0]
			stream, err := r.conn.NewStream(bounded(t), desc, "/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo")
			if err != nil {
				t.Fatal(err)
			}
			req := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
			if err := stream.SendMsg(req); err != nil {
				t.Fatal(err)
			}
			res := &reflectionv1.ServerReflectionResponse{}
			if err := stream.RecvMsg(res); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range res.GetListServicesResponse().GetService() {
				names = append(names, s.GetName())
			}
			checkServices(t, names)
		})
	}
}

func checkServices(t *testing.T, names []string) {
	t.Helper()
	for _, want := range wantServices {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in %v", want, names)
		}
	}
}

// TestPanic: a panic costs its caller an INTERNAL, and nobody else anything.
func TestPanic(t *testing.T) {
	r := serve(t, Config{}, func(s *grpc.Server) { peerv1.RegisterMemberServiceServer(s, noisyPeer{}) })
	r.Set(func(f *fsmtest.Faults) { f.Boom = true })
	_, err := r.ids.Generate(bounded(t), &idnodev1.GenerateRequest{Template: "u|"})
	wantStatus(t, err, codes.Internal, "INTERNAL", "")
	if strings.Contains(err.Error(), "boom") {
		t.Error("the panic reached the caller")
	}
	if log := r.log.String(); !strings.Contains(log, "boom") || !strings.Contains(log, "backend).Propose") {
		t.Errorf("neither panic nor stack in the log: %s", log)
	}
	stream, err := peerv1.NewMemberServiceClient(r.conn).Forward(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantStatus(t, err, codes.Internal, "INTERNAL", "")
	r.Set(func(f *fsmtest.Faults) { f.Boom = false })
	if _, err := r.ids.Generate(bounded(t), &idnodev1.GenerateRequest{Template: "u|"}); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// noisyPeer panics in streams and fails otherwise.
type noisyPeer struct {
	peerv1.UnimplementedMemberServiceServer
}

func (noisyPeer) Forward(peerv1.MemberService_ForwardServer) error { panic("boom") }

func (noisyPeer) Ping(context.Context, *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	return nil, status.Error(codes.Internal, "noise")
}

// TestRequestLog: failures are logged with their reason, successes and the calls
// between nodes are not, and no request is.
func TestRequestLog(t *testing.T) {
	r := serve(t, Config{}, func(s *grpc.Server) { peerv1.RegisterMemberServiceServer(s, noisyPeer{}) })
	ctx := bounded(t)
	_, _ = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "fine|"})
	_, _ = peerv1.NewMemberServiceClient(r.conn).Ping(ctx, &peerv1.PingRequest{})
	_, _ = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: `hidden\|`})
	r.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	_, _ = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "hidden|"})
	log := r.log.String()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != 2 {
		t.Fatalf("log: %s", log)
	}
	for i, want := range []string{
		"level=INFO msg=call method=/idnode.v1.IdsService/Generate code=InvalidArgument",
		"level=WARN msg=call method=/idnode.v1.IdsService/Generate code=Unavailable",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[1], "reason=NO_QUORUM") || strings.Contains(log, "hidden") {
		t.Errorf("log: %s", log)
	}
}

// TestLimits: what is too large is refused by the transport.
func TestLimits(t *testing.T) {
	r := serve(t, Config{
		Options: []grpc.ServerOption{grpc.MaxRecvMsgSize(1000), grpc.MaxSendMsgSize(2000)}, Logger: slog.New(slog.DiscardHandler),
	}, nil)
	ctx := bounded(t)
	_, err := r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: strings.Repeat("x", 1000)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large request: %v", err)
	}
	_, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{Count: 100})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large answer: %v", err)
	}
	long := metadata.AppendToOutgoingContext(ctx, "x", strings.Repeat("x", maxHeaderBytes))
	if _, err = r.ids.Generate(long, &idnodev1.GenerateRequest{}); err == nil {
		t.Error("large headers are accepted")
	}
	if _, err = r.ids.Generate(ctx, &idnodev1.GenerateRequest{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestLargestAnswers: what the service lets through fits what clients accept.
func TestLargestAnswers(t *testing.T) {
	r := serve(t, Config{}, nil)
	for _, req := range []*idnodev1.GenerateRequest{
		{Count: 10_000},
		{Count: 10_000, Template: strings.Repeat("x", 79) + "/"},
		{Count: 500, Template: strings.Repeat("x", 2000) + "|"},
		{Count: 1_000_000, Template: "u/", BlocksOnly: true},
	} {
		res, err := r.ids.Generate(bounded(t), req)
		if err != nil || !req.GetBlocksOnly() && len(res.GetIds()) != int(req.GetCount()) {
			t.Errorf("%d of %.9q: %v", req.GetCount(), req.GetTemplate(), err)
		}
	}
}

func TestUnknownMethod(t *testing.T) {
	r := serve(t, Config{}, nil)
	err := r.conn.Invoke(bounded(t), "/idnode.v1.IdsService/Nonsense", &idnodev1.GenerateRequest{}, &idnodev1.GenerateResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
	stream, err := peerv1.NewMemberServiceClient(r.conn).Forward(bounded(t))
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unimplemented || err == io.EOF {
		t.Errorf("a service that is not there: %v", err)
	}
}

// BenchmarkGenerate compares a server-side id with the emptiest call there is.
func BenchmarkGenerate(b *testing.B) {
	r := serve(b, Config{}, nil)
	ctx := context.Background()
	b.Run("server-side", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("health check", func(b *testing.B) {
		client := healthv1.NewHealthClient(r.conn)
		for b.Loop() {
			if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
