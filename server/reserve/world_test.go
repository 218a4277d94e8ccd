package reserve

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of nothing but its replicated state: operations are encoded into
// entries and applied at once.
type world struct {
	t     testing.TB
	state *fsm.State
	id    []byte
	index uint64

	mu sync.Mutex
	// nodes hear of numbers that are taken, unless they are cut off.
	nodes []*node
	alone bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, id: []byte("cluster---------")}
	w.state = fsm.New(fsm.Config{HiLoTaken: w.taken})
	member := &raftlogv1.Member{Id: []byte("node-a----------"), Tag: "A", GrpcAddress: "a:1", RaftAddress: "a:2", Voter: true}
	w.must(&raftlogv1.Bootstrap{ClusterId: w.id, Members: []*raftlogv1.Member{member}}, "")
	return w
}

func (w *world) apply(operation []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	header := raftlog.Header{Format: w.state.Format(), ClusterID: w.id, TimeUnixNano: time.Now().UnixNano()}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	results, err := w.state.Apply(w.index, raftlog.AppendEntry(nil, header, [][]byte{group}))
	if err != nil {
		w.t.Errorf("apply: %v", err)
		return nil
	}
	return slices.Clone(results[0].Results[0])
}

// must applies an operation that the test itself needs.
func (w *world) must(payload proto.Message, database string) *raftlogv1.Result {
	w.t.Helper()
	operation, err := op.Envelope{Database: database}.Encode(payload)
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := op.DecodeResult(w.apply(operation))
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// next takes a range as a caller does, and set and merge say that numbers are taken.
func (w *world) next(tag string, size, lastMax int64) hilo.Range {
	got := w.must(&raftlogv1.HiLoNext{Tag: tag, Size: size, LastMax: lastMax}, "db").GetHiloNext()
	return hilo.Range{Low: got.GetLow(), High: got.GetHigh()}
}

func (w *world) merge(tag string, to int64) {
	w.must(&raftlogv1.Merge{Hilos: []*raftlogv1.MergeHiLo{{Tag: tag, Max: to}}}, "db")
}

func (w *world) set(tag string, to int64) {
	w.must(&raftlogv1.HiLoSet{Tag: tag, Max: to, Expected: w.max(tag)}, "db")
}

func (w *world) max(tag string) int64 {
	counter, _ := w.state.HiLo("db", tag)
	return counter.Max
}

// taken is the state's call.
func (w *world) taken(database, tag string, upTo int64) {
	for _, n := range w.nodes {
		if n.QuorumMissing() == 0 {
			n.keeper.Discard(database, tag, upTo)
		}
	}
}

// node is one node of a world, with its keeper.
type node struct {
	*world
	keeper *Keeper

	cutMu sync.Mutex
	// since is when it was cut off; zero if it is not.
	since time.Time
	// removed is what ClusterCheck returns.
	removed error
	// meanwhile is called when an operation is applied and not yet answered.
	meanwhile func()
	// lost makes the answers of operations that are applied be lost.
	lost bool
}

// newNode makes a node, whose keeper ends with the test.
func (w *world) newNode(length time.Duration) *node {
	n := &node{world: w}
	tag := func() (string, bool) { return "A", true }
	n.keeper = NewKeeper(Config{Held: NewHeld(), Cluster: n, For: length, Tag: tag, Logger: slog.New(slog.DiscardHandler)})
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	return n
}

// cut cuts the node off, or ends that.
func (n *node) cut(off bool) {
	n.cutMu.Lock()
	defer n.cutMu.Unlock()
	n.since = time.Time{}
	if off {
		n.since = time.Now()
	}
}

func (n *node) QuorumMissing() time.Duration {
	n.cutMu.Lock()
	defer n.cutMu.Unlock()
	if n.since.IsZero() {
		return 0
	}
	return time.Since(n.since) + 1
}

func (n *node) ClusterCheck() error { return n.removed }

func (n *node) Members() []*raftlogv1.Member {
	if n.alone {
		return []*raftlogv1.Member{{Tag: "A"}, {Tag: "B", Removed: true}}
	}
	return []*raftlogv1.Member{{Tag: "A"}, {Tag: "B"}}
}

func (n *node) Propose(_ context.Context, operation []byte) ([]byte, error) {
	if n.QuorumMissing() > 0 {
		return nil, outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	answer := n.apply(operation)
	if n.meanwhile != nil {
		n.meanwhile()
	}
	if n.lost {
		return nil, outcome.NewUnknown(outcome.Deadline, nil)
	}
	return answer, nil
}

// crash ends the keeper as the end of its process does.
func (n *node) crash() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.keeper.Stop(ctx)
}

// use takes ranges of 32 through the node, one a pause, as a steady caller does.
func (n *node) use(tag string, ranges int, pause time.Duration) {
	for range ranges {
		r := n.next(tag, 32, 0)
		n.keeper.Took("db", tag, nil, r)
		time.Sleep(pause)
	}
	synctest.Wait()
}

// holds reports whether there is a number of the tag in reserve.
func (n *node) holds(tag string) bool {
	_, ok := n.keeper.Holds("db", tag)
	return ok
}

// drain takes all that there is in reserve.
func (n *node) drain(tag string, size int64) (all []hilo.Range) {
	for {
		r, ok := n.keeper.Take("db", tag, size)
		if !ok {
			return all
		}
		all = append(all, r)
	}
}
