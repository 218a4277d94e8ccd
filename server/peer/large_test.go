package peer

import (
	"context"
	"testing"

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
	p := newPair(t, nil)
	forwardAll(p, map[byte]int{1: raftlog.MaxResultBytes})
	r, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
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
	p := newPair(t, nil)
	p.peers.most = 10_000
	forwardAll(p, map[byte]int{1: 20_000, 2: 9_000})
	for range 2 {
		_, err := p.pool.Forward(soon(t), "B", "b", []byte{1})
		want(t, err, outcome.Unknown, outcome.TooLarge)
	}
	if r, err := p.pool.Forward(soon(t), "B", "b", []byte{2}); err != nil || len(r.Results) != 9 {
		t.Errorf("%d results, %v", len(r.Results), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dials != 1 {
		t.Errorf("%d connections", p.dials)
	}
}
