package cluster_test

import (
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestTheClockIsTheOneGiven: a range says when the leader's clock says it was given.
func TestTheClockIsTheOneGiven(t *testing.T) {
	t.Parallel()
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	n := startNetwork(t, 1, func(c *cluster.Config) { c.Now = func() time.Time { return at } })
	operation, err := op.Envelope{Database: "default"}.Encode(&raftlogv1.HiLoNext{Tag: "users"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := n.servers[0].node.Propose(t.Context(), operation)
	if err != nil {
		t.Fatal(err)
	}
	result, err := op.DecodeResult(answer)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.GetHiloNext().GetTimeUnixNano(); got != at.UnixNano() {
		t.Errorf("the range was given at %v, and the clock says %v", time.Unix(0, got).UTC(), at)
	}
}
