package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/budget"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/service"
)

// exchange is one request that the scripted server expects, and what it does then.
// Nothing of the last three set is an empty answer.
type exchange struct {
	// Node is the node that is asked; empty for any.
	Node   string `json:"node"`
	Method string `json:"method"`
	// Request has the fields that are looked at. "$1" stands for any text, the same one
	// wherever it is written; null for a field that is not there.
	Request map[string]any `json:"request"`
	// Forever expects any number of these, one or more.
	Forever bool `json:"forever"`
	// Again answers a later request that is the same in the same way: on a busy machine an answer comes
	// late, and the client sends a request that changes nothing by being repeated once more.
	Again  bool            `json:"again"`
	Answer json.RawMessage `json:"answer"`
	Error  *refusal        `json:"error"`
	// EpochAgoMs is how long before the begin of the case the epoch of the layout in Answer is.
	EpochAgoMs int64 `json:"epochAgoMs"`
	// Waits has a request wait for its turn: the client makes it beside others.
	Waits bool `json:"waits"`
	// Index is where the log is from then on, if it is not 0.
	Index uint64 `json:"index"`
	// Cluster is that of the node from then on, if it is not empty.
	Cluster string `json:"cluster"`
	// GetStatus is how the node refuses GetStatus from then on.
	GetStatus *refusal `json:"getStatus"`
	// Lose ends the connection without an answer, Silent waits until the caller leaves. Freeze
	// has the node be silent to all that it is asked from then on, DelayMs answer late.
	Lose    bool `json:"lose"`
	Silent  bool `json:"silent"`
	Freeze  bool `json:"freeze"`
	DelayMs int  `json:"delayMs"`
	// become is what each node is from then on. The first one that is not silent leads.
	become []kind
}

// refusal is an error as a node answers it.
type refusal struct {
	Code, Reason, Field string
	PauseMs             int
}

// script is a cluster whose nodes follow a list of exchanges. GetStatus is not among
// them: it says that the first node of each cluster leads, and where the log is, at index 100 at first.
type script struct {
	leaderless bool
	began      time.Time

	mu       sync.Mutex
	kinds    map[string]kind   // by the node's tag
	asked    time.Time         // when a node was first asked for an id after that
	took     time.Duration     // from then to the answer
	clusters map[string]string // by the node's tag
	frozen   map[string]bool
	refused  map[string]*refusal // how a node refuses GetStatus
	index    uint64
	steps    []exchange
	again    []exchange
	met      bool // the first of steps, which goes on forever, was met
	named    map[string]string
	wrong    []string
	windows  []window
}

func newScript(c testCase) *script {
	s := &script{leaderless: c.Leaderless, began: time.Now(), index: 100, steps: c.Server}
	s.clusters, s.frozen, s.named = make(map[string]string), make(map[string]bool), make(map[string]string)
	s.refused, s.kinds = make(map[string]*refusal), make(map[string]kind)
	if c.Young {
		s.index = 0
	}
	for i := range max(c.Nodes, 1) {
		s.clusters[tag(i)] = "c"
	}
	for i, cluster := range c.Clusters {
		s.clusters[tag(i)] = cluster
	}
	return s
}

// tag returns the tag of the node with an index.
func tag(i int) string { return string(rune('A' + i)) }

// play makes a call of node.
func (s *script) play(ctx context.Context, node, method string, request any) (proto.Message, error) {
	answer := answerOf(method)
	s.linger(ctx, node, path.Base(method))
	if err := s.own(ctx, node, path.Base(method)); err != nil {
		return nil, err
	}
	frozen := s.isFrozen(node)
	if path.Base(method) == "GetStatus" && !frozen {
		got, err := s.status(node)
		proto.Merge(answer, got)
		return answer, err
	}
	var step exchange
	if !frozen {
		s.awaitTurn(ctx, path.Base(method))
		step = s.next(node, path.Base(method), request.(proto.Message))
	}
	switch {
	case step.Error != nil:
		return nil, step.Error.status()
	case step.Lose:
		return nil, errLost
	case step.Silent, step.Freeze, frozen:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	<-time.After(time.Duration(step.DelayMs) * time.Millisecond)
	if len(step.Answer) == 0 {
		return answer, nil
	}
	if err := protojson.Unmarshal(step.Answer, answer); err != nil {
		return nil, err
	}
	s.addWindow(answer, step.EpochAgoMs)
	return answer, nil
}

// clusterIDKey is the metadata that names a call's cluster, as the header does over HTTP.
var clusterIDKey = strings.ToLower(service.ClusterIDHeader)

// own refuses a call for another cluster. Each call but GetStatus must name one.
func (s *script) own(ctx context.Context, node, method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch named := metadata.ValueFromIncomingContext(ctx, clusterIDKey); {
	case s.frozen[node]:
		return nil
	case len(named) == 0 && method != "GetStatus":
		s.wrong = append(s.wrong, fmt.Sprintf("%s at node %s named no cluster", method, node))
	case len(named) > 0 && !slices.Equal(named, []string{s.clusters[node]}):
		return (&refusal{Code: "FailedPrecondition", Reason: "OTHER_CLUSTER"}).status()
	}
	return nil
}

func (s *script) clusterOf(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusters[node]
}

// awaitTurn waits until those before a request that waits were met.
func (s *script) awaitTurn(ctx context.Context, method string) {
	early := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.steps, func(step exchange) bool { return step.Waits && step.Method == method })
		return i > 0
	}
	for ctx.Err() == nil && early() {
		<-time.After(5 * time.Millisecond)
	}
}

func (s *script) isFrozen(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen[node]
}

func (s *script) status(node string) (*idnodev1.GetStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.refused[node]; refused != nil {
		return nil, refused.status()
	}
	leader := s.leader(node)
	return &idnodev1.GetStatusResponse{
		ClusterId: s.clusters[node], Self: &idnodev1.Member{Tag: node}, LeaderTag: leader, HasQuorum: leader != "", AppliedIndex: s.index,
	}, nil
}

// leaderOf returns the tag of a node's leader; empty if it knows none.
func (s *script) leaderOf(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader(node)
}

// leader is leaderOf for a caller who holds mu.
func (s *script) leader(node string) string {
	if s.leaderless {
		return ""
	}
	return s.first(s.clusters[node])
}

// first returns the first node of a cluster that is not silent, its leader; empty for none. The caller holds mu.
func (s *script) first(cluster string) string {
	nodes := slices.Sorted(maps.Keys(s.clusters))
	i := slices.IndexFunc(nodes, func(node string) bool { return s.clusters[node] == cluster && s.kinds[node] != silent })
	if i < 0 {
		return ""
	}
	return nodes[i]
}

// errLost is what gRPC says when a connection ends. Over HTTP it is one that ends.
var errLost = status.Error(codes.Unavailable, "the connection was lost")

// next returns the exchange that a request begins.
func (s *script) next(node, method string, request proto.Message) exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := fieldsOf(request)
	if len(s.steps) > 1 && s.met && (s.steps[0].Method != method || !s.same(s.steps[0].Request, got)) {
		s.steps, s.met = s.steps[1:], false
	}
	answers := func(e exchange) bool {
		return e.Method == method && (e.Node == "" || s.same(e.Node, node)) && s.same(e.Request, got)
	}
	if i := slices.IndexFunc(s.again, answers); i >= 0 {
		return s.again[i]
	}
	if len(s.steps) == 0 {
		return s.unexpected("nothing", node, method, got)
	}
	step := s.steps[0]
	if !answers(step) {
		return s.unexpected(fmt.Sprintf("%s%s %v", step.Node, step.Method, step.Request), node, method, got)
	}
	if step.Again {
		s.again = append(s.again, step)
	}
	if s.met = step.Forever; !s.met {
		s.steps = s.steps[1:]
	}
	s.index = max(s.index, step.Index)
	s.frozen[node], s.refused[node] = step.Freeze, step.GetStatus
	for i, kind := range step.become {
		s.kinds[tag(i)], s.frozen[tag(i)] = kind, kind == silent
	}
	if !s.asked.IsZero() {
		s.took = time.Since(s.asked)
	}
	if step.Cluster != "" {
		s.clusters[node] = step.Cluster
	}
	return step
}

func (s *script) unexpected(want, node, method string, got map[string]any) exchange {
	s.wrong = append(s.wrong, fmt.Sprintf("node %s was asked %s %v; expected was %s", node, method, got, want))
	return exchange{Error: &refusal{Code: "Internal", Reason: "UNEXPECTED"}}
}

// fieldsOf returns a message as the fields of its JSON.
func fieldsOf(m proto.Message) map[string]any {
	fields := make(map[string]any)
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(err) // A message that was decoded just now.
	}
	return fields
}

// same says whether got has all that want has. The caller holds mu.
func (s *script) same(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && s.same(value, fields[name])
		}
		return ok
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(want, list, s.same)
	case string:
		text, ok := got.(string)
		if !strings.HasPrefix(want, "$") || !ok {
			return want == got
		}
		if have, bound := s.named[want]; bound {
			return have == text
		}
		s.named[want] = text
		return text != ""
	default:
		return want == got
	}
}

// end reports what differed from the script.
func (s *script) end(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met {
		s.steps = s.steps[1:]
	}
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
	for _, step := range s.steps {
		t.Errorf("nobody asked %s %v", step.Method, step.Request)
	}
}

func (r *refusal) status() error {
	var code codes.Code
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if c.String() == r.Code {
			code = c
		}
	}
	if code == codes.OK {
		panic("there is no code " + r.Code)
	}
	st := status.New(code, "because")
	var details []protoadapt.MessageV1
	if r.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Domain: "idnode", Reason: r.Reason})
	}
	if r.Field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: r.Field}}})
	}
	if r.PauseMs > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(r.PauseMs) * time.Millisecond)})
	}
	st, err := st.WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return st.Err()
}

// answerOf returns an empty answer of a method.
func answerOf(method string) proto.Message {
	service, name := path.Split(strings.TrimPrefix(method, "/"))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.TrimSuffix(service, "/")))
	if err != nil {
		panic(err)
	}
	output := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name)).Output()
	m, err := protoregistry.GlobalTypes.FindMessageByName(output.FullName())
	if err != nil {
		panic(err)
	}
	return m.New().Interface()
}

// httpNode is a node that the API as JSON over HTTP is served by.
type httpNode struct {
	*script
	tag string
}

// Unary implements jsonapi.Calls.
func (n httpNode) Unary(ctx context.Context, method string, _ *budget.Connection, decode func(any) error,
	encode func(proto.Message) ([]byte, error),
) ([]byte, error) {
	for _, service := range []grpc.ServiceDesc{
		idnodev1.IdsService_ServiceDesc, idnodev1.SeriesService_ServiceDesc, idnodev1.SnowflakeService_ServiceDesc,
		idnodev1.ClusterService_ServiceDesc,
	} {
		for _, m := range service.Methods {
			if method != "/"+service.ServiceName+"/"+m.MethodName {
				continue
			}
			decoded := func(request any) error {
				if err := decode(request); err != nil {
					return n.Refuse(err)
				}
				return nil
			}
			answer, err := m.Handler(nil, ctx, decoded,
				func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
					return n.play(ctx, n.tag, method, request)
				})
			if err == errLost {
				panic(http.ErrAbortHandler)
			}
			if err != nil {
				return nil, err
			}
			return encode(answer.(proto.Message))
		}
	}
	return nil, status.Error(codes.Unimplemented, "not in the script")
}

// Refuse implements jsonapi.Calls.
func (httpNode) Refuse(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// Status implements jsonapi.Calls.
func (httpNode) Status(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// serveHTTP starts nodes, and returns their addresses.
func (s *script) serveHTTP(t *testing.T, nodes int) []string {
	endpoints := make([]string, nodes)
	for i := range nodes {
		mux := http.NewServeMux()
		api := jsonapi.New(httpNode{s, tag(i)}, func(string) error { return nil })
		api.Handle(mux.Handle)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(service.ClusterIDHeader, s.clusterOf(tag(i)))
			w.Header().Set(service.TermHeader, "1")
			if leader := s.leaderOf(tag(i)); leader != "" {
				w.Header().Set(service.TermHeader, strconv.Itoa(1+int(leader[0]-'A')))
				w.Header().Set(service.LeaderHeader, endpoints[leader[0]-'A'])
			}
			named := metadata.MD{clusterIDKey: r.Header.Values(service.ClusterIDHeader)}
			mux.ServeHTTP(w, r.WithContext(metadata.NewIncomingContext(r.Context(), named)))
		}))
		t.Cleanup(server.Close)
		endpoints[i] = strings.TrimPrefix(server.URL, "http://")
	}
	return endpoints
}

// serveGRPC does the same over gRPC.
func (s *script) serveGRPC(t *testing.T, nodes int) []string {
	var endpoints []string
	for i := range nodes {
		server := grpc.NewServer(grpc.UnaryInterceptor(
			func(ctx context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
				return s.play(ctx, tag(i), info.FullMethod, request)
			},
		))
		idnodev1.RegisterIdsServiceServer(server, idnodev1.UnimplementedIdsServiceServer{})
		idnodev1.RegisterSeriesServiceServer(server, idnodev1.UnimplementedSeriesServiceServer{})
		idnodev1.RegisterSnowflakeServiceServer(server, idnodev1.UnimplementedSnowflakeServiceServer{})
		idnodev1.RegisterClusterServiceServer(server, idnodev1.UnimplementedClusterServiceServer{})
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(lis) }()
		t.Cleanup(func() { server.Stop(); <-done })
		endpoints = append(endpoints, lis.Addr().String())
	}
	return endpoints
}
