package peer

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/raftlog"
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
		t.Errorf("the group under way: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
	p.node.forward = nil
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
