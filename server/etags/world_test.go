package etags

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/fsmtest"
)

// world is a cluster of one node, with faults of its proposals.
type world struct {
	*fsmtest.Cluster
	t     testing.TB
	state *fsm.State

	mu       sync.Mutex
	proposed int
	// fail, if set, is what Propose returns.
	fail error
	// block, if set, holds Propose up until it is closed or the call ends.
	block chan struct{}
}

var nodeA = fsmtest.NodeID("A")

func newWorld(t testing.TB) *world {
	t.Helper()
	c := fsmtest.New(t, time.Unix(1_700_000_000, 0), fsmtest.Member("A"))
	return &world{Cluster: c, t: t, state: c.State}
}

// announce starts the node again, as far as the cluster knows, and returns what the node
// hears of it.
func (w *world) announce() *raftlogv1.EtagRecord {
	w.t.Helper()
	member := &raftlogv1.Member{Id: nodeA, Tag: "A", GrpcAddress: "a:7400", RaftAddress: "a:7401"}
	said := w.Must(op.Envelope{}, &raftlogv1.MemberAnnounce{Member: member}).GetMember().GetEtags()
	known := w.state.Etags(nodeA)
	known.Start, known.Clean = said.GetStart(), said.GetClean()
	return known
}

// Propose implements Proposer.
func (w *world) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	w.mu.Lock()
	block := w.block
	w.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, outcome.NewUnknown(outcome.Deadline, ctx.Err())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proposed++
	if w.fail != nil {
		return nil, w.fail
	}
	return w.Cluster.Propose(ctx, operation)
}

func (w *world) set(change func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *world) proposals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.proposed
}

// maxDatabases is the limit, as a node asks for it.
func (w *world) maxDatabases() int {
	limit, _ := w.state.Setting("max-databases")
	return int(limit.Value)
}

func (w *world) setMaxDatabases(most int64) {
	w.t.Helper()
	w.Must(op.Envelope{}, &raftlogv1.SettingSet{Key: "max-databases", Value: most})
}

// ceilings counts the databases for which the cluster keeps a ceiling.
func (w *world) ceilings() (n int) {
	for _, d := range w.state.Etags(nodeA).GetCeilings() {
		if d.GetCeiling() > 0 {
			n++
		}
	}
	return n
}

// wantStarting checks that an error says that the node starts.
func wantStarting(t *testing.T, err error) {
	t.Helper()
	var starting etag.StartingError
	if !errors.As(err, &starting) {
		t.Fatalf("error %v, want an etag.StartingError", err)
	}
}

// await polls until the condition holds.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !condition(); {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}
