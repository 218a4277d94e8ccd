// Package fsmtest is a cluster of nothing but its replicated state, for tests of what
// stands above it: operations are encoded into entries and applied at once.
package fsmtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// ClusterID is the id of each such cluster.
var ClusterID = []byte("cluster---------")

// NodeID returns the Raft id of the member of a tag.
func NodeID(tag string) []byte { return []byte("node-" + strings.ToLower(tag) + "----------") }

// Member returns a voter that knows the oldest log format.
func Member(tag string) *raftlogv1.Member {
	host := strings.ToLower(tag)
	return &raftlogv1.Member{Id: NodeID(tag), Tag: tag, GrpcAddress: host + ":7400", RaftAddress: host + ":7401", Voter: true, LogFormat: 1}
}

// Cluster is the state and the end of its log. It is safe for concurrent use.
type Cluster struct {
	State *fsm.State

	t     testing.TB
	mu    sync.Mutex
	index uint64
	now   time.Time
}

// New forms a cluster of the members. Its clock is set to now.
func New(t testing.TB, now time.Time, members ...*raftlogv1.Member) *Cluster {
	t.Helper()
	c := &Cluster{State: fsm.New(fsm.Config{}), t: t, now: now}
	c.Must(op.Envelope{}, &raftlogv1.Bootstrap{ClusterId: ClusterID, Members: members})
	return c
}

// Propose applies an encoded operation in an entry of its own, and returns the encoded result.
func (c *Cluster) Propose(_ context.Context, operation []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	header := raftlog.Header{Format: 1, ClusterID: ClusterID, TimeUnixNano: c.now.UnixNano()}
	group := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{operation}})
	results, err := c.State.Apply(c.index, raftlog.AppendEntry(nil, header, [][]byte{group}))
	if err != nil {
		c.t.Errorf("apply: %v", err)
		return nil, err
	}
	result := slices.Clone(results[0].Results[0])
	if bound := op.ResultBound(operation); len(result) > bound {
		c.t.Errorf("a result of %d bytes, said to have at most %d", len(result), bound)
	}
	if _, err := op.DecodeResult(result); len(op.RefusalOf(err).GetDetail()) > maxWords {
		c.t.Errorf("the words of a refusal have more than %d bytes, and some clients read no more than 8 KiB of an error: %v", maxWords, err)
	}
	return result, nil
}

// maxWords is above the words of every refusal.
const maxWords = 1500

// Must applies an operation that the test itself needs, and returns its result.
func (c *Cluster) Must(e op.Envelope, payload proto.Message) *raftlogv1.Result {
	c.t.Helper()
	operation, err := e.Encode(payload)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := c.Propose(c.t.Context(), operation)
	if err != nil {
		c.t.Fatal(err)
	}
	result, err := op.DecodeResult(answer)
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// Each proposes operations one after the other, for proposers that take several.
func Each(ctx context.Context, propose func(context.Context, []byte) ([]byte, error), operations [][]byte) ([][]byte, []error) {
	results, errs := make([][]byte, len(operations)), make([]error, len(operations))
	for i, operation := range operations {
		results[i], errs[i] = propose(ctx, operation)
	}
	return results, errs
}

// Index is the index of the newest entry.
func (c *Cluster) Index() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index
}

// Now is the time that the next entry has.
func (c *Cluster) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Cluster) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
