package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCluster is the state that its nodes agree on.
type fakeCluster struct {
	// id is the cluster id in its nodes' status.
	id    string
	nodes []*fakeNode

	mu sync.Mutex
	// leader is the tag that all nodes name.
	leader string
	index  uint64
	values map[string]int64
	hilos  map[string]fakeRange // the newest of each tag
	claims map[string]bool
	etag   int64
	// answers and asked have the answer to each request id, and its request without the id.
	answers, asked map[string]proto.Message
}

// fakeNode is a node that serves on loopback.
type fakeNode struct {
	idnodev1.UnimplementedIdsServiceServer
	idnodev1.UnimplementedClusterServiceServer
	idnodev1.UnimplementedSeriesServiceServer
	*fakeCluster
	tag, addr, advertised string
	server                *grpc.Server

	nmu sync.Mutex
	// before runs before a call takes effect, after once it has: an error is
	// the answer then.
	before, after func(ctx context.Context, req proto.Message) error
	// status, if set, changes what the node says of the cluster, once it returns.
	status func(*idnodev1.GetStatusResponse)
	// overloaded refuses GetStatus.
	overloaded bool
	reqs       []proto.Message
	// parents are the spans that the callers of reqs name.
	parents []string
	// messages counts those of Exchange streams.
	messages int
}

// newCluster starts a cluster of which A leads.
func newCluster(t testing.TB, size int) *fakeCluster {
	t.Helper()
	c := &fakeCluster{
		id: "c", leader: "A", index: 10, values: map[string]int64{}, hilos: map[string]fakeRange{},
		claims: map[string]bool{}, answers: map[string]proto.Message{}, asked: map[string]proto.Message{},
	}
	for i := range size {
		n := &fakeNode{fakeCluster: c, tag: string(rune('A' + i))}
		n.start(t)
		c.nodes = append(c.nodes, n)
	}
	return c
}

func (n *fakeNode) start(t testing.TB, opts ...grpc.ServerOption) {
	server := grpc.NewServer(append(opts, grpc.ChainUnaryInterceptor(n.ownUnary), grpc.ChainStreamInterceptor(n.ownStream))...)
	idnodev1.RegisterIdsServiceServer(server, n)
	idnodev1.RegisterClusterServiceServer(server, n)
	idnodev1.RegisterSeriesServiceServer(server, n)
	n.serve(t, server)
}

// own refuses what names another cluster, as a node does, and what names none.
func (n *fakeNode) own(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if named := metadata.ValueFromIncomingContext(ctx, "idnode-cluster-id"); !slices.Equal(named, []string{n.id}) {
		text := fmt.Sprintf("the node belongs to cluster %s, and the call is for %q", n.id, named)
		return failureFor(codes.FailedPrecondition, "OTHER_CLUSTER", "", text)
	}
	return nil
}

func (n *fakeNode) ownUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if info.FullMethod != idnodev1.ClusterService_GetStatus_FullMethodName {
		if err := n.own(ctx); err != nil {
			return nil, err
		}
	}
	return handler(ctx, req)
}

func (n *fakeNode) ownStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := n.own(stream.Context()); err != nil {
		return err
	}
	return handler(srv, stream)
}

func (n *fakeNode) serve(t testing.TB, server *grpc.Server) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.addr = lis.Addr().String()
	n.advertised, n.server = n.addr, server
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lis) }()
	t.Cleanup(func() { server.Stop(); <-done })
}

func (c *fakeCluster) addrs() []string {
	var list []string
	for _, n := range c.nodes {
		list = append(list, n.addr)
	}
	return list
}

func (c *fakeCluster) lead(tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = tag
}

// hook sets before and after.
func (n *fakeNode) hook(before, after func(context.Context, proto.Message) error) {
	n.nmu.Lock()
	defer n.nmu.Unlock()
	n.before, n.after = before, after
}

// describe changes what the node says of the cluster.
func (n *fakeNode) describe(change func(*idnodev1.GetStatusResponse)) {
	n.nmu.Lock()
	defer n.nmu.Unlock()
	n.status = change
}

// refuseStatus has the node refuse to say anything of the cluster.
func (n *fakeNode) refuseStatus() {
	n.nmu.Lock()
	defer n.nmu.Unlock()
	n.overloaded = true
}

// hold has the node keep all calls until release is closed. The first one closes begun.
func (n *fakeNode) hold() (begun, release chan struct{}) {
	begun, release = make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(begun) })
	n.hook(func(context.Context, proto.Message) error {
		first()
		<-release
		return nil
	}, nil)
	return begun, release
}

func (n *fakeNode) requests() []proto.Message {
	n.nmu.Lock()
	defer n.nmu.Unlock()
	return append([]proto.Message(nil), n.reqs...)
}

// spans returns the spans that the callers of requests name.
func (n *fakeNode) spans() []string {
	n.nmu.Lock()
	defer n.nmu.Unlock()
	return append([]string(nil), n.parents...)
}

func always(err error) func(context.Context, proto.Message) error {
	return func(context.Context, proto.Message) error { return err }
}

// hang waits for the caller to go away.
func hang(ctx context.Context, _ proto.Message) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// failure is an error as idnode answers it.
func failure(code codes.Code, reason, field string) error {
	return failureFor(code, reason, field, "because")
}

func failureFor(code codes.Code, reason, field, text string) error {
	s := status.New(code, text)
	details := []interface {
		Reset()
		String() string
		ProtoMessage()
	}{&errdetails.ErrorInfo{Domain: "idnode", Reason: reason}}
	if field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field}}})
	}
	for _, d := range details {
		next, err := s.WithDetails(d)
		if err != nil {
			panic(err)
		}
		s = next
	}
	return s.Err()
}

// serve runs the hooks around a call that takes effect once per request id.
func serve[T proto.Message](ctx context.Context, n *fakeNode, req proto.Message, id *idnodev1.RequestId,
	apply func(index uint64) (T, error),
) (T, error) {
	var none T
	n.nmu.Lock()
	n.reqs = append(n.reqs, req)
	n.parents = append(n.parents, strings.Join(metadata.ValueFromIncomingContext(ctx, "traceparent"), ","))
	before, after := n.before, n.after
	n.nmu.Unlock()
	if before != nil {
		if err := before(ctx, req); err != nil {
			return none, err
		}
	}
	got, err := applyOnce(n.fakeCluster, id, req, apply)
	if err == nil && after != nil {
		err = after(ctx, req)
	}
	if err != nil {
		return none, err
	}
	return got, nil
}

func applyOnce[T proto.Message](c *fakeCluster, id *idnodev1.RequestId, req proto.Message, apply func(index uint64) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := proto.Clone(req)
	if id != nil {
		same.ProtoReflect().Clear(same.ProtoReflect().Descriptor().Fields().ByName("request_id"))
	}
	if have, ok := c.answers[id.GetId()].(T); ok {
		if !proto.Equal(same, c.asked[id.GetId()]) {
			var none T
			return none, failure(codes.AlreadyExists, "REQUEST_ID_REUSED", "request_id")
		}
		return have, nil
	}
	c.index++
	got, err := apply(c.index)
	if err == nil && id != nil {
		c.answers[id.GetId()], c.asked[id.GetId()] = got, same
	}
	return got, err
}

func (n *fakeNode) GetStatus(context.Context, *idnodev1.GetStatusRequest) (*idnodev1.GetStatusResponse, error) {
	n.nmu.Lock()
	change, overloaded := n.status, n.overloaded
	n.nmu.Unlock()
	if overloaded {
		return nil, failure(codes.ResourceExhausted, "OVERLOADED", "")
	}
	s := n.view()
	if change != nil {
		change(s)
	}
	return s, nil
}

func (n *fakeNode) view() *idnodev1.GetStatusResponse {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &idnodev1.GetStatusResponse{ClusterId: n.id, LeaderTag: n.leader, HasQuorum: true, Term: 1, AppliedIndex: n.index}
	for _, m := range n.nodes {
		s.Members = append(s.Members, &idnodev1.Member{Tag: m.tag, GrpcAddress: m.advertised})
	}
	s.Self = &idnodev1.Member{Tag: n.tag, GrpcAddress: n.advertised}
	return s
}

func (n *fakeNode) Generate(ctx context.Context, r *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	return serve(ctx, n, r, r.GetRequestId(), func(index uint64) (*idnodev1.GenerateResponse, error) {
		t, err := docid.Parse(r.GetTemplate(), r.GetSeparator())
		if err != nil {
			return nil, err
		}
		return n.generate(t, r, index)
	})
}

func (n *fakeNode) generate(t docid.Template, r *idnodev1.GenerateRequest, index uint64) (*idnodev1.GenerateResponse, error) {
	got := &idnodev1.GenerateResponse{NodeTag: n.tag}
	var b *idnodev1.IdBlock
	switch t.Kind {
	case docid.Identity:
		last := n.values[t.Name]
		n.values[t.Name] += r.GetCount()
		got.LogIndex = index
		b = &idnodev1.IdBlock{Prefix: t.Name + t.Separator, First: last + 1, Last: last + r.GetCount()}
	case docid.ServerSide:
		b = &idnodev1.IdBlock{Prefix: t.Text, First: n.etag + 1, Last: n.etag + r.GetCount(), Width: 19, Suffix: "-" + n.tag}
		n.etag += r.GetCount()
	case docid.GUID:
		got.Ids = []string{"9f0c2d1e-0000-4000-8000-000000000000"}
		if r.GetTimeOrdered() {
			got.Ids = []string{"019f0c2d-0000-7000-8000-000000000000"}
		}
		return got, nil
	default:
		if r.GetClaim() && n.claims[t.Text] {
			return nil, failure(codes.AlreadyExists, "ID_CLAIMED", "")
		}
		n.claims[t.Text] = r.GetClaim()
		got.Ids = []string{t.Text}
		return got, nil
	}
	got.Blocks = []*idnodev1.IdBlock{b}
	for i := b.First; i <= b.Last && !r.GetBlocksOnly(); i++ {
		got.Ids = append(got.Ids, fmt.Sprintf("%s%0*d%s", b.Prefix, b.Width, i, b.Suffix))
	}
	return got, nil
}

func (n *fakeNode) NextIdentity(ctx context.Context, r *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	return serve(ctx, n, r, r.GetRequestId(), func(index uint64) (*idnodev1.NextIdentityResponse, error) {
		last := n.values[r.GetName()]
		n.values[r.GetName()] += r.GetCount()
		return &idnodev1.NextIdentityResponse{LogIndex: index, Blocks: []*idnodev1.ValueBlock{{First: last + 1, Last: last + r.GetCount()}}}, nil
	})
}

func (n *fakeNode) GetIdentity(ctx context.Context, r *idnodev1.GetIdentityRequest) (*idnodev1.GetIdentityResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.GetIdentityResponse, error) {
		v, ok := n.values[r.GetName()]
		if !ok {
			return nil, failure(codes.NotFound, "IDENTITY_NOT_FOUND", "")
		}
		return &idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: r.GetName(), Value: v}}, nil
	})
}

// ListIdentities gives names i0000 to i2499 in pages.
func (n *fakeNode) ListIdentities(_ context.Context, r *idnodev1.ListIdentitiesRequest) (*idnodev1.ListIdentitiesResponse, error) {
	from := 0
	if r.GetPageToken() != "" {
		if _, err := fmt.Sscan(r.GetPageToken(), &from); err != nil {
			return nil, failure(codes.InvalidArgument, "INVALID_PAGE_TOKEN", "page_token")
		}
	}
	to := min(from+int(r.GetPageSize()), 2500)
	got := &idnodev1.ListIdentitiesResponse{}
	for i := from; i < to; i++ {
		got.Identities = append(got.Identities, &idnodev1.Identity{Name: fmt.Sprintf("i%04d", i), Value: int64(i)})
	}
	if to < 2500 {
		got.NextPageToken = fmt.Sprint(to)
	}
	return got, nil
}

func (n *fakeNode) Claim(ctx context.Context, r *idnodev1.ClaimRequest) (*idnodev1.ClaimResponse, error) {
	return serve(ctx, n, r, r.GetRequestId(), func(index uint64) (*idnodev1.ClaimResponse, error) {
		if n.claims[r.GetId()] {
			return nil, failure(codes.AlreadyExists, "ID_CLAIMED", "")
		}
		n.claims[r.GetId()] = true
		return &idnodev1.ClaimResponse{Id: r.GetId(), LogIndex: index}, nil
	})
}

// fakeRange is a range that can be given back. Without a token it can not, and only its high
// counts.
type fakeRange struct {
	low, high int64
	token     string
	label     string
}

func (n *fakeNode) NextRange(ctx context.Context, r *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
	return serve(ctx, n, r, r.GetRequestId(), func(index uint64) (*idnodev1.NextRangeResponse, error) {
		size := r.GetSize()
		if size == 0 {
			size = max(2*r.GetLastSize(), 32)
		}
		base := max(n.hilos[r.GetTag()].high, r.GetLastMax())
		got := fakeRange{low: base + 1, high: base + size, token: fmt.Sprint(index), label: r.GetLabel()}
		n.hilos[r.GetTag()] = got
		sep := r.GetSeparator()
		if sep == "" {
			sep = "/"
		}
		return &idnodev1.NextRangeResponse{
			Prefix: r.GetTag() + sep, Low: got.low, High: got.high, Size: size, NodeTag: n.tag,
			RangeAt: timestamppb.New(time.Unix(1_700_000_000, 0)), Token: got.token, LogIndex: index,
		}, nil
	})
}

func (n *fakeNode) WhoHolds(ctx context.Context, r *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	return serve(ctx, n, r, nil, func(index uint64) (*idnodev1.WhoHoldsResponse, error) {
		if h := n.hilos[r.GetTag()]; h.low <= r.GetNumber() && r.GetNumber() <= h.high {
			return &idnodev1.WhoHoldsResponse{
				State: idnodev1.RangeState_RANGE_STATE_OUTSTANDING, Low: h.low, High: h.high, LogIndex: index,
				Holder: &idnodev1.RangeHolder{Label: h.label, NodeTag: n.tag, IssuedAt: timestamppb.New(time.Unix(1_700_000_000, 0))},
			}, nil
		}
		return &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED, LogIndex: index}, nil
	})
}

func (n *fakeNode) ReturnRange(ctx context.Context, r *idnodev1.ReturnRangeRequest) (*idnodev1.ReturnRangeResponse, error) {
	return serve(ctx, n, r, r.GetRequestId(), func(index uint64) (*idnodev1.ReturnRangeResponse, error) {
		h := n.hilos[r.GetTag()]
		ok := r.GetHigh() == h.high && r.GetToken() == h.token
		if ok {
			h = fakeRange{high: r.GetLast()}
			n.hilos[r.GetTag()] = h
		}
		return &idnodev1.ReturnRangeResponse{Returned: ok, Max: h.high, LogIndex: index}, nil
	})
}

// Exchange answers each call by the method of its name.
func (n *fakeNode) Exchange(stream grpc.BidiStreamingServer[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	var sending sync.Mutex
	for {
		r, err := stream.Recv()
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		n.nmu.Lock()
		n.messages++
		n.nmu.Unlock()
		for _, call := range r.GetCalls() {
			calls.Go(func() {
				reply := n.reply(stream.Context(), call)
				sending.Lock()
				defer sending.Unlock()
				_ = stream.Send(&idnodev1.ExchangeResponse{Replies: []*idnodev1.Reply{reply}})
			})
		}
	}
}

func (n *fakeNode) reply(ctx context.Context, call *idnodev1.Call) *idnodev1.Reply {
	reply := &idnodev1.Reply{Correlation: call.GetCorrelation()}
	if parent := call.GetTraceparent(); parent != "" {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("traceparent", parent))
	}
	var err error
	switch c := call.GetCall().(type) {
	case *idnodev1.Call_Generate:
		r, failed := n.Generate(ctx, c.Generate)
		reply.Reply, err = &idnodev1.Reply_Generate{Generate: r}, failed
	case *idnodev1.Call_NextIdentity:
		r, failed := n.NextIdentity(ctx, c.NextIdentity)
		reply.Reply, err = &idnodev1.Reply_NextIdentity{NextIdentity: r}, failed
	case *idnodev1.Call_NextRange:
		r, failed := n.NextRange(ctx, c.NextRange)
		reply.Reply, err = &idnodev1.Reply_NextRange{NextRange: r}, failed
	case *idnodev1.Call_ReturnRange:
		r, failed := n.ReturnRange(ctx, c.ReturnRange)
		reply.Reply, err = &idnodev1.Reply_ReturnRange{ReturnRange: r}, failed
	case *idnodev1.Call_Claim:
		r, failed := n.Claim(ctx, c.Claim)
		reply.Reply, err = &idnodev1.Reply_Claim{Claim: r}, failed
	default:
		err = status.Error(codes.Unimplemented, "not in this fake")
	}
	if err != nil {
		s := status.Convert(err).Proto()
		reply.Reply = &idnodev1.Reply_Error{Error: &idnodev1.Error{Code: s.GetCode(), Message: s.GetMessage(), Details: s.GetDetails()}}
	}
	return reply
}

// connect returns a client that is closed with the test.
func connect(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
}

// wantNext takes a value of orders.
func wantNext(t *testing.T, c *client.Client, want int64) {
	t.Helper()
	if v, err := c.Identity("orders").Next(t.Context()); err != nil || v != want {
		t.Fatal(v, err)
	}
}

// together has callers take as many numbers each, at the same time, and returns all.
func together(t *testing.T, callers, each int, take func() (int64, error)) []int64 {
	t.Helper()
	var mu sync.Mutex
	var got []int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				n, err := take()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got = append(got, n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return got
}

// wantCounted checks that the numbers are 1 and all that follow, in any order.
func wantCounted(t *testing.T, got []int64) {
	t.Helper()
	slices.Sort(got)
	for i, n := range got {
		if n != int64(i+1) {
			t.Fatalf("number %d is %d", i+1, n)
		}
	}
}
