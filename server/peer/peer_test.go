package peer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/test/bufconn"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	idA        = slices.Repeat([]byte{0xa}, 16)
	idB        = slices.Repeat([]byte{0xb}, 16)
	idGone     = slices.Repeat([]byte{0xc}, 16)
	idStranger = slices.Repeat([]byte{0xd}, 16)
)

// fakeNode is node B of a cluster of A and B, from which C was removed.
type fakeNode struct {
	forward func(ctx context.Context, group []byte) (raftlog.GroupResult, error)
	answer  error
	// caller is who pinged last.
	caller []byte
	// removed says that A was removed.
	removed atomic.Bool
}

func (n *fakeNode) Member(id []byte) (*raftlogv1.Member, bool) {
	for _, m := range n.Members() {
		if string(m.GetId()) == string(id) {
			return m, true
		}
	}
	return nil, false
}

func (n *fakeNode) Members() []*raftlogv1.Member {
	return []*raftlogv1.Member{
		{Id: idA, Tag: "A", Removed: n.removed.Load()},
		{Id: idB, Tag: "B"},
		{Id: idGone, Tag: "C", Removed: true},
	}
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
	return &peerv1.PingResponse{Id: idB}, n.answer
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
	node *fakeNode
	pool *Pool
	// self is who the pool's node is, by the handshake.
	self []byte
	mu   sync.Mutex
	// last is the newest connection dialled, of so many.
	last  net.Conn
	dials int
	peers *Server
	// slow, if set, is how many bytes a second the pool reads; read counts them.
	slow int
	read atomic.Int64
	// pings are those that the node sent or answered.
	pings atomic.Int64
}

// slowConn is a connection to a node over a slow network.
type slowConn struct {
	net.Conn
	p  *pair
	in *frames
}

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.p.read.Add(int64(n))
	for rest := b[:n]; len(rest) > 0; {
		var began bool
		if _, rest, began, _ = c.in.next(rest); began && c.in.kind == framePing {
			c.p.pings.Add(1)
		}
	}
	if c.p.slow > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(c.p.slow))
	}
	return n, err
}

// calls is a listener whose connections say who calls.
type calls struct {
	net.Listener
	p *pair
}

func (c calls) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return callsConn{conn, nodeid.ID(c.p.self).String()}, err
}

type callsConn struct {
	net.Conn
	caller string
}

func (c callsConn) RemoteAddr() net.Addr { return raftID(c.caller) }

type raftID string

func (raftID) Network() string  { return "raft" }
func (r raftID) String() string { return string(r) }

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{node: &fakeNode{}, self: idA}
	p.peers = NewServer(p.node, withTraceparent)
	listener := bufconn.Listen(1 << 20)
	served := make(chan struct{})
	go func() {
		defer close(served)
		p.peers.Serve(calls{listener, p})
	}()
	p.pool = NewPool(PoolConfig{
		Logger: slog.New(slog.DiscardHandler), Traceparent: traceparentOf,
		DialMember: func(ctx context.Context, id []byte) (net.Conn, error) {
			if string(id) != string(idB) {
				return nil, errors.New("nobody there")
			}
			conn, err := listener.DialContext(ctx)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.last = conn
			p.dials++
			return slowConn{conn, p, &frames{}}, err
		},
	})
	t.Cleanup(func() {
		p.pool.Close()
		_ = listener.Close()
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
	p := newPair(t)
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{slices.Clone(group)}}, nil
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			group := []byte{byte(i), byte(i >> 8)}
			r, err := p.pool.Forward(soon(t), idB, group)
			if err != nil || r.Status != raftlog.Applied || len(r.Results) != 1 || string(r.Results[0]) != string(group) {
				t.Errorf("group %d: %v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

// TestGroupsBringNoPings: gRPC measures how far away the other side is, unless its windows are set, by a
// ping at each burst of data: that would be two more messages for each group.
func TestGroupsBringNoPings(t *testing.T) {
	p := newPair(t)
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{slices.Clone(group)}}, nil
	}
	for range 100 {
		if _, err := p.pool.Forward(soon(t), idB, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.pings.Load(); n > 0 {
		t.Errorf("%d pings beside 100 groups", n)
	}
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
	p := newPair(t)
	p.node.forward = func(ctx context.Context, _ []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{[]byte(traceparentOf(ctx))}}, nil
	}
	for _, traceparent := range []string{"00-1-1-01", "", "00-2-2-01"} {
		r, err := p.pool.Forward(withTraceparent(soon(t), traceparent), idB, []byte{1})
		if err != nil || string(r.Results[0]) != traceparent {
			t.Errorf("the trace %q: %v, %v", traceparent, r, err)
		}
	}
}

// TestForwardOutOfOrder answers the second group while the first one waits.
func TestForwardOutOfOrder(t *testing.T) {
	p := newPair(t)
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
		r, err := p.pool.Forward(soon(t), idB, []byte{1})
		if err == nil && r.Results[0][0] != 1 {
			err = errors.New("the first call got the second's answer")
		}
		first <- err
	}()
	<-arrived
	if r, err := p.pool.Forward(soon(t), idB, []byte{2}); err != nil || r.Results[0][0] != 2 {
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
			p := newPair(t)
			p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) { return raftlog.GroupResult{}, tt.err }
			_, err := p.pool.Forward(soon(t), idB, []byte{1})
			want(t, err, tt.want, tt.reason)
		})
	}
}

// TestDecodedOutcomesHaveTheMessage, which alone says what a reason of a newer leader is.
func TestDecodedOutcomesHaveTheMessage(t *testing.T) {
	err := decode(encode(outcome.NewNotApplied(99, errors.New("the moon is full"))))
	want(t, err, outcome.NotApplied, 99)
	var e *outcome.Error
	if !errors.As(err, &e) || e.Err == nil || !strings.Contains(e.Err.Error(), "the moon is full") {
		t.Errorf("%+v", e)
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
	p := newPair(t)
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
		_, err := p.pool.Forward(soon(t), idB, []byte{1})
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
		_, err := p.pool.Forward(soon(t), idB, []byte{2})
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
	_, err := newPair(t).pool.Forward(soon(t), idStranger, []byte{1})
	if outcome.Of(err) != outcome.NotApplied {
		t.Errorf("error %v, want not applied", err)
	}
}

// TestForwardDeadline leaves a group that was sent.
func TestForwardDeadline(t *testing.T) {
	p := newPair(t)
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
	_, err := p.pool.Forward(ctx, idB, []byte{1})
	want(t, err, outcome.Unknown, outcome.Deadline)
}

// TestBlackHole sends into a connection that swallows everything: pings without
// an answer give it up, and with it the group.
func TestBlackHole(t *testing.T) {
	var mu sync.Mutex
	var far []net.Conn
	pool := NewPool(PoolConfig{
		Logger: slog.New(slog.DiscardHandler),
		DialMember: func(context.Context, []byte) (net.Conn, error) {
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
		_, err := pool.Forward(soon(t), idB, []byte{1})
		answer <- err
	}()
	started := time.Now()
	for range maxMissedPings {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _ = pool.Ping(ctx, idB, &peerv1.PingRequest{})
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
	p := newPair(t)
	p.node.answer = refusedError{}
	_, err := p.pool.Transfer(soon(t), idB, &peerv1.TransferRequest{Tag: "X"})
	var refused interface{ Refused() *raftlogv1.Refusal }
	if !errors.As(err, &refused) || refused.Refused().GetDetail() != "there is no X" {
		t.Errorf("error %v, want the refusal", err)
	}
	p.node.answer = outcome.NewNotApplied(outcome.NotLeader, nil)
	_, err = p.pool.ReadIndex(soon(t), idB)
	want(t, err, outcome.NotApplied, outcome.NotLeader)
	p.node.answer = nil
	if index, err := p.pool.ReadIndex(soon(t), idB); err != nil || index != 42 {
		t.Errorf("read index %d, %v", index, err)
	}
}

type refusedError struct{}

func (refusedError) Error() string { return "refused" }
func (refusedError) Refused() *raftlogv1.Refusal {
	return &raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_MEMBER_NOT_FOUND, Detail: "there is no X"}
}

// TestOnlyMembersAreAnswered: the handshake has proved who calls; a member that was removed since is
// pinged, as long as its vote counts, and no more.
func TestOnlyMembersAreAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		self     []byte
		answered bool
	}{"a member": {idA, true}, "a removed member": {idGone, false}, "a stranger": {idStranger, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.self = tt.self
			p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) {
				return raftlog.GroupResult{Status: raftlog.Applied}, nil
			}
			calls := map[string]func() error{
				"ReadIndex": func() error { _, err := p.pool.ReadIndex(soon(t), idB); return err },
				"Forward":   func() error { _, err := p.pool.Forward(soon(t), idB, []byte{1}); return err },
				"Members":   func() error { _, err := p.pool.Members(soon(t), idB); return err },
				"Transfer": func() error {
					_, err := p.pool.Transfer(soon(t), idB, &peerv1.TransferRequest{})
					return err
				},
				"MayRemove": func() error {
					_, err := p.pool.MayRemove(soon(t), idB, &peerv1.MayRemoveRequest{})
					return err
				},
			}
			for what, call := range calls {
				if err := call(); tt.answered && err != nil || !tt.answered && outcome.Of(err) != outcome.NotApplied {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := p.pool.Ping(soon(t), idB, &peerv1.PingRequest{}); err != nil || string(p.node.caller) != string(tt.self) {
				t.Errorf("a ping by %x: %v", p.node.caller, err)
			}
		})
	}
}

// TestARemovedMembersGroupsAreRefused, also on a stream that was open before.
func TestARemovedMembersGroupsAreRefused(t *testing.T) {
	p := newPair(t)
	p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied}, nil
	}
	if _, err := p.pool.Forward(soon(t), idB, []byte{1}); err != nil {
		t.Fatal(err)
	}
	p.node.removed.Store(true)
	_, err := p.pool.Forward(soon(t), idB, []byte{2})
	want(t, err, outcome.NotApplied, outcome.NotLeader)
	if p.dials != 1 {
		t.Errorf("%d connections", p.dials)
	}
}

// TestJoiningByCertificate: who says hello, or asks to join, shows a certificate of the tag it states.
func TestJoiningByCertificate(t *testing.T) {
	for _, tt := range []struct {
		tag, cert string
		want      codes.Code
	}{
		{"D", "D", codes.OK},
		{"D", "client", codes.PermissionDenied},
		{"", "D", codes.PermissionDenied},
		{"D", "-", codes.OK}, // Without TLS.
	} {
		var authorize Authorize
		if tt.cert != "-" {
			authorize = func(_ context.Context, tag string) error {
				if tag != tt.cert {
					return errors.New("it does not")
				}
				return nil
			}
		}
		server, listener := grpc.NewServer(), bufconn.Listen(1<<20)
		RegisterJoining(server, &fakeNode{}, authorize)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(listener) }()
		pool := NewPool(PoolConfig{
			Logger:      slog.New(slog.DiscardHandler),
			DialContext: func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		})
		self := &raftlogv1.Member{Id: idStranger, Tag: tt.tag}
		_, hello := pool.Hello(soon(t), "B", "b", &peerv1.HelloRequest{Self: self})
		_, join := pool.Join(soon(t), "", "b", &peerv1.JoinRequest{Member: self})
		for _, err := range []error{hello, join} {
			var e *CallError
			if (err == nil) != (tt.want == codes.OK) || errors.As(err, &e) && (e.Code != tt.want || !e.Denied()) {
				t.Errorf("as %q with the certificate of %s: %v, want %v", tt.tag, tt.cert, err, tt.want)
			}
		}
		pool.Close()
		server.Stop()
		<-served
	}
}

func TestClosedPool(t *testing.T) {
	p := newPair(t)
	p.pool.Close()
	_, err := p.pool.Forward(soon(t), idB, []byte{1})
	want(t, err, outcome.NotApplied, outcome.Stopping)
}
