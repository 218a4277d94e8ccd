package etags

import (
	"errors"
	"testing"
	"time"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/fsmtest"
)

// world is a node of a cluster of its own.
type world struct {
	*fsmtest.Node
	t testing.TB
}

var nodeA = fsmtest.NodeID("A")

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{fsmtest.NewNode(t, time.Unix(1_700_000_000, 0), fsmtest.Member("A")), t}
}

// announce starts the node again, as far as the cluster knows, and returns what the node
// hears of it.
func (w *world) announce() *raftlogv1.EtagRecord {
	w.t.Helper()
	member := &raftlogv1.Member{Id: nodeA, Tag: "A", GrpcAddress: "a:7400", RaftAddress: "a:7401"}
	said := w.Must(op.Envelope{}, &raftlogv1.MemberAnnounce{Member: member}).GetMember().GetEtags()
	known := w.State.Etags(nodeA)
	known.Start, known.Clean = said.GetStart(), said.GetClean()
	return known
}

// maxDatabases is the limit, as a node asks for it.
func (w *world) maxDatabases() int {
	limit, _ := w.State.Setting("max-databases")
	return int(limit.Value)
}

func (w *world) setMaxDatabases(most int64) {
	w.t.Helper()
	w.Must(op.Envelope{}, &raftlogv1.SettingSet{Key: "max-databases", Value: most})
}

// ceilings counts the databases for which the cluster keeps a ceiling.
func (w *world) ceilings() (n int) {
	for _, d := range w.State.Etags(nodeA).GetCeilings() {
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
