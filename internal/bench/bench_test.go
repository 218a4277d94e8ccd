package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/google/uuid"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server counts as idnode does, but for what a test makes it do wrong.
type server struct {
	idnodev1.UnimplementedIdsServiceServer
	idnodev1.UnimplementedClusterServiceServer
	idnodev1.UnimplementedSeriesServiceServer
	// defined counts the definitions. The first is refused until later, or all for good.
	defined      atomic.Int64
	neverDefined bool
	last         atomic.Int64
	calls        atomic.Int64
	// fail, if set, may refuse the n-th call.
	fail func(n int64) error
	// twice makes every tenth call repeat what the one before it got.
	twice bool
}

func (s *server) take(count int64) (first, last int64, err error) {
	n := s.calls.Add(1)
	if s.fail != nil {
		if err := s.fail(n); err != nil {
			return 0, 0, err
		}
	}
	if s.twice && n%10 == 0 {
		last := s.last.Load()
		return last - count + 1, last, nil
	}
	last = s.last.Add(count)
	return last - count + 1, last, nil
}

// GetStatus tells the cluster, without which the client takes no answer.
func (s *server) GetStatus(context.Context, *idnodev1.GetStatusRequest) (*idnodev1.GetStatusResponse, error) {
	return &idnodev1.GetStatusResponse{ClusterId: "c", HasQuorum: true}, nil
}

func (s *server) NextIdentity(_ context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	first, last, err := s.take(req.Count)
	return &idnodev1.NextIdentityResponse{Blocks: []*idnodev1.ValueBlock{{First: first, Last: last}}}, err
}

func (s *server) DefineSeries(context.Context, *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	if s.neverDefined {
		return nil, status.Error(codes.PermissionDenied, "not yours")
	}
	if s.defined.Add(1) == 1 {
		return nil, status.Error(codes.Unavailable, "starting")
	}
	return &idnodev1.DefineSeriesResponse{Version: 1}, nil
}

func (s *server) TakeNumbers(_ context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	first, last, err := s.take(int64(len(req.Keys)))
	r := &idnodev1.TakeNumbersResponse{}
	for n := first; n <= last; n++ {
		r.Numbers = append(r.Numbers, &idnodev1.SeriesNumber{Number: n})
	}
	return r, err
}

func (s *server) NextRange(_ context.Context, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
	first, last, err := s.take(req.Size)
	return &idnodev1.NextRangeResponse{Low: first, High: last}, err
}

func (s *server) Generate(_ context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	if req.Template == "" {
		ids := make([]string, req.Count)
		for i := range ids {
			ids[i] = uuid.NewString()
		}
		return &idnodev1.GenerateResponse{Ids: ids}, nil
	}
	first, last, err := s.take(req.Count)
	return &idnodev1.GenerateResponse{NodeTag: "A", Blocks: []*idnodev1.IdBlock{{First: first, Last: last}}}, err
}

// Exchange answers every call of a message in one message, last call first.
func (s *server) Exchange(stream grpc.BidiStreamingServer[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var replies []*idnodev1.Reply
		for _, call := range req.Calls {
			replies = append([]*idnodev1.Reply{s.reply(stream.Context(), call)}, replies...)
		}
		if err := stream.Send(&idnodev1.ExchangeResponse{Replies: replies}); err != nil {
			return err
		}
	}
}

func (s *server) reply(ctx context.Context, call *idnodev1.Call) *idnodev1.Reply {
	reply := &idnodev1.Reply{Correlation: call.Correlation}
	var err error
	switch c := call.Call.(type) {
	case *idnodev1.Call_NextIdentity:
		r, failed := s.NextIdentity(ctx, c.NextIdentity)
		reply.Reply, err = &idnodev1.Reply_NextIdentity{NextIdentity: r}, failed
	case *idnodev1.Call_NextRange:
		r, failed := s.NextRange(ctx, c.NextRange)
		reply.Reply, err = &idnodev1.Reply_NextRange{NextRange: r}, failed
	case *idnodev1.Call_Generate:
		r, failed := s.Generate(ctx, c.Generate)
		reply.Reply, err = &idnodev1.Reply_Generate{Generate: r}, failed
	}
	if err != nil {
		p := status.Convert(err).Proto()
		reply.Reply = &idnodev1.Reply_Error{Error: &idnodev1.Error{Code: p.Code, Message: p.Message, Details: p.Details}}
	}
	return reply
}

// served is a way to a server, plain and through the client.
type served struct {
	grpc.ClientConnInterface
	client *client.Client
}

// serve serves s and returns the ways to it.
func serve(t *testing.T, s *server) served {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	idnodev1.RegisterIdsServiceServer(g, s)
	idnodev1.RegisterClusterServiceServer(g, s)
	idnodev1.RegisterSeriesServiceServer(g, s)
	h := health.NewServer()
	h.SetServingStatus(liveService, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(g, h)
	go func() { _ = g.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///bench", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(t.Context(), client.Config{
		Endpoints: []string{"bench:1"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close(context.Background())
		_ = conn.Close()
		g.Stop()
	})
	return served{conn, c}
}

func config(way served) Config {
	return Config{
		Op: Identity, Via: Unary, Callers: 4, Batch: 3, Names: 1, Prefix: "n",
		Duration: 150 * time.Millisecond, Conns: []grpc.ClientConnInterface{way}, Client: way.client,
	}
}

func TestEveryOperationEveryWay(t *testing.T) {
	for _, op := range Ops() {
		for _, via := range Vias() {
			if op == Echo && via != Unary || op == Series && via == Stream {
				continue
			}
			t.Run(op+" via "+via, func(t *testing.T) {
				c := config(serve(t, &server{}))
				c.Op, c.Via = op, via
				var p Progress
				r, err := Run(t.Context(), c, &p)
				if err != nil {
					t.Fatal(err)
				}
				calls, ids, failed := p.Counts()
				if calls == 0 || failed != 0 || len(r.ErrorReasons) != 0 {
					t.Errorf("%d calls, %d failed, %v", calls, failed, r.ErrorReasons)
				}
				if want := 3 * calls; op != Echo && ids != want {
					t.Errorf("%d ids in %d calls, want %d", ids, calls, want)
				}
				if r.CallsPerS <= 0 || r.P50us < 1 || r.P99us < r.P50us || r.MaxUs < r.P999us || r.Seconds < c.Duration.Seconds() {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func TestAnIDThatCameTwiceIsFound(t *testing.T) {
	for _, via := range Vias() {
		c := config(serve(t, &server{twice: true}))
		c.Via = via
		_, err := Run(t.Context(), c, &Progress{})
		if err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("via %s: %v", via, err)
		}
	}
}

func TestFailuresAreCountedByReason(t *testing.T) {
	busy, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.ErrorInfo{Reason: "OVERLOADED", Domain: "idnode"})
	if err != nil {
		t.Fatal(err)
	}
	for _, via := range []string{Unary, Stream} { // the client rides such failures out
		s := &server{fail: func(n int64) error {
			switch n % 10 {
			case 0:
				return busy.Err()
			case 1:
				return status.Error(codes.Internal, "broken")
			}
			return nil
		}}
		c := config(serve(t, s))
		c.Via = via
		r, err := Run(t.Context(), c, &Progress{})
		if err != nil || r.ErrorReasons["OVERLOADED"] == 0 || r.ErrorReasons["Internal"] == 0 || len(r.ErrorReasons) != 2 {
			t.Errorf("via %s: %v %v", via, r.ErrorReasons, err)
		}
	}
}

// TestACallerPausesAfterARefusal: one that repeats at once takes the processor of all the others.
func TestACallerPausesAfterARefusal(t *testing.T) {
	c := config(serve(t, &server{fail: func(int64) error { return status.Error(codes.Unavailable, "stopping") }}))
	var p Progress
	r, err := Run(t.Context(), c, &p)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(c.Callers) * int64(r.Seconds/refusedPause.Seconds()+1)
	if _, _, failed := p.Counts(); failed == 0 || failed > most {
		t.Errorf("%d calls failed, at most %d had the time for it", failed, most)
	}
}

func TestARefusedSeriesEndsTheBenchmark(t *testing.T) {
	c := config(serve(t, &server{neverDefined: true}))
	c.Op = Series
	begin := time.Now()
	if _, err := Run(t.Context(), c, &Progress{}); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	if took := time.Since(begin); took >= defineWithin {
		t.Errorf("after %s", took)
	}
}

func TestCheckUnique(t *testing.T) {
	for name, tc := range map[string]struct {
		taken []block
		twice bool
	}{
		"nothing":                {},
		"apart":                  {[]block{{1, 4, 6}, {1, 1, 3}, {1, 7, 7}}, false},
		"the same of another":    {[]block{{1, 1, 3}, {2, 1, 3}}, false},
		"one number of a block":  {[]block{{1, 1, 3}, {1, 3, 5}}, true},
		"a block within another": {[]block{{1, 1, 9}, {1, 4, 5}}, true},
		"equal":                  {[]block{{1, 2, 2}, {1, 2, 2}}, true},
	} {
		if err := checkUnique(tc.taken); (err != nil) != tc.twice {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"operation":       func(c *Config) { c.Op = "ids" },
		"way":             func(c *Config) { c.Via = "post" },
		"echo streamed":   func(c *Config) { c.Op, c.Via = Echo, Stream },
		"series streamed": func(c *Config) { c.Op, c.Via = Series, Stream },
		"keys":            func(c *Config) { c.Op, c.Batch = Series, maxKeys+1 },
		"series":          func(c *Config) { c.Op, c.Names = Series, maxSeries+1 },
		"callers":         func(c *Config) { c.Callers = 0 },
		"batch":           func(c *Config) { c.Batch = maxBatch + 1 },
		"guids":           func(c *Config) { c.Op, c.Batch = GUID, maxGUIDs+1 },
		"names":           func(c *Config) { c.Names = -1 },
		"duration":        func(c *Config) { c.Duration = 2 * time.Hour },
		"endpoints":       func(c *Config) { c.Conns = nil },
		"client":          func(c *Config) { c.Via, c.Client = ViaClient, nil },
	} {
		c := config(serve(t, &server{}))
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := Run(t.Context(), c, &Progress{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
