package peer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	clusterOne = slices.Repeat([]byte{1}, 16)
	idA        = slices.Repeat([]byte{0xa}, 16)
	idB        = slices.Repeat([]byte{0xb}, 16)
	idGone     = slices.Repeat([]byte{0xc}, 16)
	idStranger = slices.Repeat([]byte{0xd}, 16)
)

// fakeNode is node B of a cluster of A and B, from which C was removed.
type fakeNode struct {
	cluster []byte
	forward func(ctx context.Context, group []byte) (raftlog.GroupResult, error)
	answer  error
	caller  []byte
	process uint64
	// removed says that A was removed; lookedUp, if set, is called after each look
	// for a member.
	removed  atomic.Bool
	lookedUp func(id []byte)
}

func (n *fakeNode) ClusterID() []byte { return n.cluster }

func (n *fakeNode) Member(id []byte) (*raftlogv1.Member, bool) {
	if n.lookedUp != nil {
		defer n.lookedUp(id)
	}
	for _, m := range []*raftlogv1.Member{
		{Id: idA, Tag: "A", Removed: n.removed.Load()},
		{Id: idB, Tag: "B"},
		{Id: idGone, Tag: "C", Removed: true},
	} {
		if string(m.GetId()) == string(id) {
			return m, true
		}
	}
	return nil, false
}

func (n *fakeNode) HandleHello(context.Context, *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	return &peerv1.HelloResponse{Self: &raftlogv1.Member{Id: idB, Tag: "B"}}, n.answer
}

func (n *fakeNode) HandleForward(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
	return n.forward(ctx, group)
}

func (n *fakeNode) HandleReadIndex(context.Context) (uint64, error) { return 42, n.answer }

func (n *fakeNode) HandlePing(_ context.Context, caller []byte, _ *peerv1.PingRequest) (*peerv1.PingResponse, error) {
	n.caller = caller
	m, _ := n.Member(caller)
	return &peerv1.PingResponse{Id: idB, CallerRemoved: m.GetRemoved(), Process: n.process}, n.answer
}

func (n *fakeNode) HandleJoin(_ context.Context, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	return &peerv1.JoinResponse{Member: req.GetMember()}, n.answer
}

func (n *fakeNode) HandleMayRemove(context.Context, *peerv1.MayRemoveRequest) (*peerv1.MayRemoveResponse, error) {
	return &peerv1.MayRemoveResponse{}, nil
}

func (n *fakeNode) HandleTransfer(context.Context, *peerv1.TransferRequest) (*peerv1.TransferResponse, error) {
	return &peerv1.TransferResponse{Leader: idA}, n.answer
}

// pair is a node behind a server, and a pool that reaches it.
type pair struct {
	node   *fakeNode
	server *grpc.Server
	pool   *Pool
	// connections are the server's.
	connections *Connections
	// self is who the pool says it is.
	mu   sync.Mutex
	self Introduction
	// last is the newest connection dialled, of so many.
	last  net.Conn
	dials int
	peers *Server
}

func newPair(t *testing.T, authorize Authorize) *pair {
	t.Helper()
	b := budget.New(budget.Limits{Bytes: 1 << 30, Connections: 100})
	p := &pair{
		connections: NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("peers") }),
		node:        &fakeNode{cluster: clusterOne}, self: Introduction{ClusterID: clusterOne, ID: idA, Tag: "A"},
	}
	p.peers = NewServer(p.node, authorize, withTraceparent)
	p.server = grpc.NewServer(grpc.Creds(p.connections.Credentials(nil)), grpc.UnaryInterceptor(p.peers.Unary),
		grpc.StreamInterceptor(p.peers.Stream))
	p.peers.Register(p.server)
	listener := bufconn.Listen(1 << 20)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = p.server.Serve(listener)
	}()
	p.pool = NewPool(PoolConfig{
		Logger:    slog.New(slog.DiscardHandler),
		Introduce: func() Introduction { return p.self }, Traceparent: traceparentOf,
		DialContext: func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := listener.DialContext(ctx)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.last = conn
			p.dials++
			return conn, err
		},
	})
	t.Cleanup(func() {
		p.pool.Close()
		p.server.Stop()
		<-served
	})
	return p
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestForward(t *testing.T) {
	p := newPair(t, nil)
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{slices.Clone(group)}}, nil
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			group := []byte{byte(i), byte(i >> 8)}
			r, err := p.pool.Forward(soon(t), "B", "b", group)
			if err != nil || r.Status != raftlog.Applied || len(r.Results) != 1 || string(r.Results[0]) != string(group) {
				t.Errorf("group %d: %v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

// traceKey is the key of a context's traceparent in these tests.
type traceKey struct{}

func withTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

func traceparentOf(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}

// TestForwardTakesTheTraceAlong: each group of a stream has its own trace, or none.
func TestForwardTakesTheTraceAlong(t *testing.T) {
	p := newPair(t, nil)
	p.node.forward = func(ctx context.Context, _ []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{[]byte(traceparentOf(ctx))}}, nil
	}
	for _, traceparent := range []string{"00-1-1-01", "", "00-2-2-01"} {
		r, err := p.pool.Forward(withTraceparent(soon(t), traceparent), "B", "b", []byte{1})
		if err != nil || string(r.Results[0]) != traceparent {
			t.Errorf("the trace %q: %v, %v", traceparent, r, err)
		}
	}
}

// TestForwardOutOfOrder answers the second group while the first one waits.
func TestForwardOutOfOrder(t *testing.T) {
	p := newPair(t, nil)
	release, arrived := make(chan struct{}), make(chan struct{})
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		if group[0] == 1 {
			close(arrived)
			<-release
		}
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{{group[0]}}}, nil
	}
	first := make(chan error, 1)
	go func() {
		r, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
		if err == nil && r.Results[0][0] != 1 {
			err = errors.New("the first call got the second's answer")
		}
		first <- err
	}()
	<-arrived
	if r, err := p.pool.Forward(soon(t), "B", "b", []byte{2}); err != nil || r.Results[0][0] != 2 {
		t.Errorf("second group: %v, %v", r, err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// TestForwardOutcomes brings the leader's own words over the stream.
func TestForwardOutcomes(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		want   outcome.Outcome
		reason outcome.Reason
	}{
		{"not the leader", outcome.NewNotApplied(outcome.NotLeader, nil), outcome.NotApplied, outcome.NotLeader},
		{"storage full", outcome.NewNotApplied(outcome.StorageFull, nil), outcome.NotApplied, outcome.StorageFull},
		{"leadership lost", outcome.NewUnknown(outcome.LeadershipLost, nil), outcome.Unknown, outcome.LeadershipLost},
		{"an error that does not say", errors.New("strange"), outcome.Unknown, outcome.Unspecified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, nil)
			p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) { return raftlog.GroupResult{}, tt.err }
			_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
			want(t, err, tt.want, tt.reason)
		})
	}
}

func want(t *testing.T, err error, o outcome.Outcome, r outcome.Reason) {
	t.Helper()
	var e *outcome.Error
	if !errors.As(err, &e) || e.Outcome != o || e.Reason != r {
		t.Errorf("error %v, want %v: %v", err, o, r)
	}
}

// TestBrokenStream breaks the connection under a group that was sent: whether it
// was applied is unknown. The next group goes over a new connection.
func TestBrokenStream(t *testing.T) {
	p := newPair(t, nil)
	arrived := make(chan struct{})
	p.node.forward = func(ctx context.Context, group []byte) (raftlog.GroupResult, error) {
		if group[0] == 1 {
			close(arrived)
			<-ctx.Done()
		}
		return raftlog.GroupResult{Status: raftlog.Applied}, nil
	}
	broken := make(chan error, 1)
	go func() {
		_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
		broken <- err
	}()
	<-arrived
	p.mu.Lock()
	_ = p.last.Close()
	p.mu.Unlock()
	if err := <-broken; outcome.Of(err) != outcome.Unknown {
		t.Errorf("error %v, want unknown", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := p.pool.Forward(soon(t), "B", "b", []byte{2})
		if err == nil {
			break
		}
		if outcome.Of(err) != outcome.NotApplied {
			t.Fatalf("while reconnecting: %v, want not applied", err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no new connection: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestForwardToNobody cannot send anything: certainly not applied.
func TestForwardToNobody(t *testing.T) {
	pool := NewPool(PoolConfig{
		Logger:      slog.New(slog.DiscardHandler),
		Introduce:   func() Introduction { return Introduction{} },
		DialContext: func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody there") },
	})
	defer pool.Close()
	_, err := pool.Forward(soon(t), "B", "b", []byte{1})
	if outcome.Of(err) != outcome.NotApplied {
		t.Errorf("error %v, want not applied", err)
	}
}

// TestForwardDeadline leaves a group that was sent.
func TestForwardDeadline(t *testing.T) {
	p := newPair(t, nil)
	arrived := make(chan struct{})
	p.node.forward = func(ctx context.Context, _ []byte) (raftlog.GroupResult, error) {
		close(arrived)
		<-ctx.Done()
		return raftlog.GroupResult{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := p.pool.Forward(ctx, "B", "b", []byte{1})
	want(t, err, outcome.Unknown, outcome.Deadline)
}

// TestBlackHole sends into a connection that swallows everything: pings without
// an answer give it up, and with it the group.
func TestBlackHole(t *testing.T) {
	var mu sync.Mutex
	var far []net.Conn
	pool := NewPool(PoolConfig{
		Logger:    slog.New(slog.DiscardHandler),
		Introduce: func() Introduction { return Introduction{} },
		DialContext: func(context.Context, string) (net.Conn, error) {
			near, hole := net.Pipe()
			go func() { // Swallow.
				buffer := make([]byte, 4096)
				for {
					if _, err := hole.Read(buffer); err != nil {
						return
					}
				}
			}()
			// A server's preface, so that the connection counts as ready.
			go func() { _, _ = hole.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) }()
			mu.Lock()
			defer mu.Unlock()
			far = append(far, hole)
			return near, nil
		},
	})
	defer pool.Close()
	answer := make(chan error, 1)
	go func() {
		_, err := pool.Forward(soon(t), "B", "b", []byte{1})
		answer <- err
	}()
	started := time.Now()
	for range maxMissedPings {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _ = pool.Ping(ctx, "B", "b", &peerv1.PingRequest{})
		cancel()
	}
	select {
	case err := <-answer:
		if outcome.Of(err) != outcome.Unknown {
			t.Errorf("error %v, want unknown", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the group hangs in the black hole")
	}
	if took := time.Since(started); took > 3*time.Second {
		t.Errorf("noticed after %v", took)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, hole := range far {
		_ = hole.Close()
	}
}

func TestErrorsTravel(t *testing.T) {
	p := newPair(t, nil)
	p.node.answer = refusedError{}
	_, err := p.pool.Transfer(soon(t), "B", "b", &peerv1.TransferRequest{Tag: "X"})
	var refused interface{ Refused() *raftlogv1.Refusal }
	if !errors.As(err, &refused) || refused.Refused().GetDetail() != "there is no X" {
		t.Errorf("error %v, want the refusal", err)
	}
	p.node.answer = outcome.NewNotApplied(outcome.NotLeader, nil)
	_, err = p.pool.ReadIndex(soon(t), "B", "b")
	want(t, err, outcome.NotApplied, outcome.NotLeader)
	p.node.answer = nil
	if index, err := p.pool.ReadIndex(soon(t), "B", "b"); err != nil || index != 42 {
		t.Errorf("read index %d, %v", index, err)
	}
}

type refusedError struct{}

func (refusedError) Error() string { return "refused" }
func (refusedError) Refused() *raftlogv1.Refusal {
	return &raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, Detail: "there is no X"}
}

// TestAConnectionToAFormerProcessIsClosed: only if a ping on it was answered by that process,
// and it was not dialled again since.
func TestAConnectionToAFormerProcessIsClosed(t *testing.T) {
	for _, tt := range []struct {
		name      string
		pinged    bool
		redialled bool
		tag       string
		process   uint64
		closed    bool
	}{
		{"a former one", true, false, "B", 2, true},
		{"the same process", true, false, "B", 1, false},
		{"another node", true, false, "C", 2, false},
		{"never pinged", false, false, "B", 2, false},
		{"dialled again", true, true, "B", 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, nil)
			p.node.process = 1
			call := func() net.Conn {
				if _, err := p.pool.ReadIndex(soon(t), "B", "b"); err != nil {
					t.Fatal(err)
				}
				return p.dialled()
			}
			before := call()
			if tt.pinged {
				if _, err := p.pool.Ping(soon(t), "B", "b", &peerv1.PingRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			if tt.redialled {
				_ = before.Close()
				for ; before == p.dialled(); time.Sleep(time.Millisecond) {
					_, _ = p.pool.ReadIndex(soon(t), "B", "b")
				}
				before = call()
			}
			p.pool.Restarted(tt.tag, tt.process)
			if closed := call() != before; closed != tt.closed {
				t.Errorf("the connection was closed: %v, want %v", closed, tt.closed)
			}
		})
	}
}

// dialled returns the newest connection.
func (p *pair) dialled() net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// TestGuard has each kind of caller make each kind of call.
func TestGuard(t *testing.T) {
	otherCluster := slices.Repeat([]byte{2}, 16)
	tests := []struct {
		name string
		self Introduction
		// cert is the tag in the caller's certificate; "-" means no TLS.
		cert string
		// member, ping and hello say what calls of these kinds must give.
		member, ping, hello codes.Code
	}{
		{"a member without TLS", Introduction{clusterOne, idA, "A"}, "-", codes.OK, codes.OK, codes.OK},
		{"a member with its certificate", Introduction{clusterOne, idA, "A"}, "A", codes.OK, codes.OK, codes.OK},
		{
			"a member's id, another's certificate",
			Introduction{clusterOne, idA, "A"},
			"B", codes.PermissionDenied, codes.PermissionDenied,
			codes.PermissionDenied,
		},
		{
			"a member's id, another's certificate and tag",
			Introduction{clusterOne, idA, "X"},
			"X", codes.PermissionDenied,
			codes.PermissionDenied, codes.OK,
		},
		{"a client's certificate", Introduction{}, "client", codes.PermissionDenied, codes.PermissionDenied, codes.PermissionDenied},
		{"of another cluster", Introduction{otherCluster, idA, "A"}, "A", codes.PermissionDenied, codes.PermissionDenied, codes.OK},
		{"a stranger without TLS", Introduction{clusterOne, idStranger, "A"}, "-", codes.PermissionDenied, codes.PermissionDenied, codes.OK},
		{"a newcomer", Introduction{nil, idStranger, "D"}, "D", codes.PermissionDenied, codes.PermissionDenied, codes.OK},
		{"a removed member", Introduction{clusterOne, idGone, "C"}, "C", codes.PermissionDenied, codes.OK, codes.OK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var authorize Authorize
			if tt.cert != "-" {
				authorize = func(_ context.Context, tag string) error {
					if tag != tt.cert {
						return errors.New("it does not")
					}
					return nil
				}
			}
			p := newPair(t, authorize)
			p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) {
				return raftlog.GroupResult{Status: raftlog.Applied}, nil
			}
			p.self = tt.self
			wantCode(t, "ReadIndex", tt.member, func() error {
				_, err := p.pool.ReadIndex(soon(t), "B", "b")
				return err
			})
			_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
			if (err == nil) != (tt.member == codes.OK) || err != nil && outcome.Of(err) != outcome.NotApplied {
				t.Errorf("Forward: %v, want %v", err, tt.member)
			}
			wantCode(t, "Transfer", tt.member, func() error {
				_, err := p.pool.Transfer(soon(t), "B", "b", &peerv1.TransferRequest{})
				return err
			})
			wantCode(t, "Ping", tt.ping, func() error {
				r, err := p.pool.Ping(soon(t), "B", "b", &peerv1.PingRequest{})
				if err == nil && r.GetCallerRemoved() != (string(tt.self.ID) == string(idGone)) {
					t.Errorf("Ping says removed: %v", r.GetCallerRemoved())
				}
				return err
			})
			self := &raftlogv1.Member{Id: tt.self.ID, Tag: tt.self.Tag}
			wantCode(t, "Hello", tt.hello, func() error {
				_, err := p.pool.Hello(soon(t), "B", "b", &peerv1.HelloRequest{Self: self})
				return err
			})
			wantCode(t, "Join", tt.hello, func() error {
				_, err := p.pool.Join(soon(t), "B", "b", &peerv1.JoinRequest{Member: self})
				return err
			})
		})
	}
}

func wantCode(t *testing.T, what string, want codes.Code, call func() error) {
	t.Helper()
	err := call()
	got := codes.OK
	var e *CallError
	if errors.As(err, &e) {
		got = e.Code
	} else if err != nil {
		got = status.Code(err)
	}
	// What a read index fails with is its outcome, so it only counts that it does.
	if got != want && (what != "ReadIndex" || (err == nil) != (want == codes.OK)) {
		t.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// TestSpeaksForAnother introduces itself as one node and asks for another.
func TestSpeaksForAnother(t *testing.T) {
	p := newPair(t, nil)
	_, err := p.pool.Join(soon(t), "B", "b", &peerv1.JoinRequest{Member: &raftlogv1.Member{Id: idStranger, Tag: "A"}})
	var e *CallError
	if !errors.As(err, &e) || !e.Denied() {
		t.Errorf("error %v, want permission denied", err)
	}
}

// TestGuardLeavesOthersAlone lets calls of other services through.
func TestGuardLeavesOthersAlone(t *testing.T) {
	s := NewServer(&fakeNode{}, func(context.Context, string) error { return errors.New("no") }, nil)
	if err := s.check(t.Context(), "/idnode.v1.IdService/NextIdentity"); err != nil {
		t.Errorf("error %v for another service", err)
	}
}

// TestStarting refuses calls of members before there is a cluster.
func TestStarting(t *testing.T) {
	p := newPair(t, nil)
	p.node.cluster = nil
	_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
	if outcome.Of(err) != outcome.NotApplied {
		t.Errorf("error %v, want not applied", err)
	}
}

func TestClosedPool(t *testing.T) {
	p := newPair(t, nil)
	p.pool.Close()
	_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
	want(t, err, outcome.NotApplied, outcome.Stopping)
}
