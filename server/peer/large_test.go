package peer

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/raftlog"
)

// forwardAll has the node answer each group with as many bytes as it says, in results of
// at most a kilobyte.
func forwardAll(p *pair, bytes map[byte]int) {
	p.node.forward = func(_ context.Context, group []byte) (raftlog.GroupResult, error) {
		r := raftlog.GroupResult{Status: raftlog.Applied}
		for left := bytes[group[0]]; left > 0; left -= 1024 {
			r.Results = append(r.Results, make([]byte, min(left, 1024)))
		}
		return r, nil
	}
}

// TestTheLargestAnswerArrives, over the stream.
func TestTheLargestAnswerArrives(t *testing.T) {
	p := newPair(t)
	forwardAll(p, map[byte]int{1: raftlog.MaxResultBytes})
	r, err := p.pool.Forward(soon(t), idB, []byte{1})
	if err != nil || len(r.Results) != raftlog.MaxResultBytes/1024 {
		t.Fatalf("%d results, %v", len(r.Results), err)
	}
	if size := proto.Size(&peerv1.ForwardResponse{
		Correlation: 1 << 63,
		Result:      raftlog.GroupResultToProto(r),
	}); size > raftlog.MaxMessageBytes {
		t.Errorf("%d bytes", size)
	}
}

// TestAnAnswerThatIsTooLargeFailsItsGroupAlone: the stream stays, with the groups on it.
func TestAnAnswerThatIsTooLargeFailsItsGroupAlone(t *testing.T) {
	p := newPair(t)
	p.peers.most = 10_000
	forwardAll(p, map[byte]int{1: 20_000, 2: 9_000})
	for range 2 {
		_, err := p.pool.Forward(soon(t), idB, []byte{1})
		want(t, err, outcome.Unknown, outcome.TooLarge)
	}
	if r, err := p.pool.Forward(soon(t), idB, []byte{2}); err != nil || len(r.Results) != 9 {
		t.Errorf("%d results, %v", len(r.Results), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dials != 1 {
		t.Errorf("%d connections", p.dials)
	}
}

// TestAPingBesideALargeAnswer is answered while that is on its way over a slow connection: gRPC
// sends both in pieces.
func TestAPingBesideALargeAnswer(t *testing.T) {
	p := newPair(t)
	p.slow = 1 << 20 // Bytes a second.
	forwardAll(p, map[byte]int{1: raftlog.MaxResultBytes})
	answer := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := p.pool.Forward(ctx, idB, []byte{1})
		answer <- err
	}()
	for p.read.Load() < 128<<10 {
		time.Sleep(time.Millisecond)
	}
	if _, err := p.pool.Ping(soon(t), idB, &peerv1.PingRequest{}); err != nil {
		t.Errorf("a ping beside the answer: %v", err)
	}
	select {
	case err := <-answer:
		t.Errorf("the ping came after the answer: %v", err)
	default:
	}
	cancel()
	<-answer
}
