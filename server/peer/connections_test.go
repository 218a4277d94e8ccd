package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/budget"
)

// TestAMembersConnectionsAreEnded: those of the member that is meant, with the stream
// of its groups, and no others.
func TestAMembersConnectionsAreEnded(t *testing.T) {
	p := newPair(t, nil)
	taken := make(chan struct{}, 1)
	p.node.forward = func(ctx context.Context, _ []byte) (raftlog.GroupResult, error) {
		taken <- struct{}{}
		<-ctx.Done()
		return raftlog.GroupResult{}, ctx.Err()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
		ended <- err
	}()
	<-taken
	p.connections.Disconnect(idStranger)
	if _, err := p.pool.Ping(soon(t), "B", "b", &peerv1.PingRequest{}); err != nil {
		t.Errorf("another member's removal: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("another member's removal ended the stream: %v", err)
	default:
	}
	p.mu.Lock()
	conn := p.last
	p.mu.Unlock()
	p.connections.Disconnect(idA)
	if err := <-ended; outcome.Of(err) != outcome.Unknown {
		t.Errorf("the group in flight: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
	p.node.forward = nil
}

// TestAMembersConnectionsAreKept even if its certificate expires: they end with its membership.
func TestAMembersConnectionsAreKept(t *testing.T) {
	p := newPair(t, nil)
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		return raftlog.GroupResult{Status: raftlog.Applied, Results: [][]byte{slices.Clone(group)}}, nil
	}
	forward := func() any {
		if _, err := p.pool.Forward(soon(t), "B", "b", []byte{1}); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last
	}
	before := forward()
	p.connections.Keep(func(credentials.AuthInfo) bool { return false })
	if forward() != before {
		t.Error("a member's connection ended")
	}
}

// TestStalledConnectionsEnd, and those whose other end reads stay.
func TestStalledConnectionsEnd(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 100, Connections: 2})
	connections := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("shop") })
	var conns [2]net.Conn
	for i := range conns {
		server, client := net.Pipe()
		defer client.Close()
		known, _, err := connections.Credentials(nil).ServerHandshake(server)
		if err != nil {
			t.Fatal(err)
		}
		known.(*conn).held.Unsent(25)
		conns[i] = known
	}
	now := time.Now()
	connections.EndStalled(now)
	conns[1].(*conn).held.Sent(1)
	connections.EndStalled(now.Add(time.Minute))
	for i, conn := range conns {
		err := conn.SetDeadline(time.Now())
		if ended := errors.Is(err, io.ErrClosedPipe); ended != (i == 0) {
			t.Errorf("connection %d: %v", i, err)
		}
		conn.Close()
	}
}

// TestAMemberDoesNotHideBehindAnotherID: a call under an unknown id, or another member's, on
// the same connection does not keep the open stream from being closed.
func TestAMemberDoesNotHideBehindAnotherID(t *testing.T) {
	for name, other := range map[string][]byte{"a stranger's": idStranger, "a removed member's": idGone, "another member's": idB} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, nil)
			taken := make(chan struct{}, 1)
			p.node.forward = func(ctx context.Context, _ []byte) (raftlog.GroupResult, error) {
				taken <- struct{}{}
				<-ctx.Done()
				return raftlog.GroupResult{}, ctx.Err()
			}
			ended := make(chan error, 1)
			go func() {
				_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
				ended <- err
			}()
			<-taken
			p.self.ID = other
			_, _ = p.pool.ReadIndex(soon(t), "B", "b")
			p.connections.Disconnect(idA)
			select {
			case err := <-ended:
				if outcome.ReasonOf(err) == outcome.Deadline {
					t.Errorf("the stream stayed open: %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("the stream stayed open")
			}
		})
	}
}

// TestARemovedMembersStreamIsAskedForEachGroup: also before its connection ends.
func TestARemovedMembersStreamIsAskedForEachGroup(t *testing.T) {
	p := newPair(t, nil)
	var groups atomic.Int32
	p.node.forward = func(context.Context, []byte) (raftlog.GroupResult, error) {
		groups.Add(1)
		return raftlog.GroupResult{Status: raftlog.Applied}, nil
	}
	if _, err := p.pool.Forward(soon(t), "B", "b", []byte{1}); err != nil {
		t.Fatal(err)
	}
	p.node.removed.Store(true)
	_, err := p.pool.Forward(soon(t), "B", "b", []byte{2})
	want(t, err, outcome.NotApplied, outcome.NotLeader)
	if groups.Load() != 1 {
		t.Error("a removed member's group was taken")
	}
}

// TestARemovalBetweenTheLookAndTheNote of a call is found by the second look.
func TestARemovalBetweenTheLookAndTheNote(t *testing.T) {
	p := newPair(t, nil)
	p.node.lookedUp = func(id []byte) {
		if !p.node.removed.Swap(true) {
			p.connections.Disconnect(id)
		}
	}
	_, err := p.pool.ReadIndex(soon(t), "B", "b")
	want(t, err, outcome.NotApplied, outcome.NotLeader)
}

// TestANodeDropsConnectionsItDialled, and makes new ones when it needs them.
func TestANodeDropsConnectionsItDialled(t *testing.T) {
	p := newPair(t, nil)
	dialled := func() any {
		if _, err := p.pool.Ping(soon(t), "B", "b", &peerv1.PingRequest{}); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last
	}
	first := dialled()
	p.pool.Disconnect("C")
	if dialled() != first {
		t.Error("another node's connection was dropped")
	}
	p.pool.Disconnect("B")
	if dialled() == first {
		t.Error("the connection was kept")
	}
}
