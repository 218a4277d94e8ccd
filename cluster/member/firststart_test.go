package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// fakePeers are nodes that greet each other without a network.
type fakePeers struct {
	mu    sync.Mutex
	nodes map[string]*fakePeer
	peers map[string]string
}

// fakePeer is one node; it answers only when it is up.
type fakePeer struct {
	all   *fakePeers
	self  *raftlogv1.Member
	peers map[string]string
	place *Place
	up    bool
}

func newFakePeers(tags ...string) *fakePeers {
	v := &fakePeers{nodes: map[string]*fakePeer{}, peers: map[string]string{}}
	for _, tag := range tags {
		v.peers[tag] = tag + ":7400"
	}
	for i, tag := range tags {
		v.nodes[tag] = &fakePeer{all: v, self: testMember(tag, byte(i+1)), peers: maps.Clone(v.peers)}
	}
	return v
}

// Hello implements Greeter.
func (v *fakePeers) Hello(_ context.Context, tag, address string, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.nodes[strings.TrimSuffix(address, ":7400")]
	if n == nil || !n.up {
		return nil, fmt.Errorf("%s is down", tag)
	}
	r := &peerv1.HelloResponse{Self: n.self, PeersHash: PeersHash(n.peers)}
	if n.place != nil {
		r.ClusterId, r.Members = n.place.ClusterID, n.place.Members
	}
	return r, nil
}

// start runs the first start of a node, and remembers where it leads.
func (v *fakePeers) start(ctx context.Context, tag string) error {
	v.mu.Lock()
	n := v.nodes[tag]
	n.up = true
	self, peers := n.self, n.peers
	v.mu.Unlock()
	place, err := FirstStart{Self: self, Peers: peers, Greeter: v, Logger: slog.New(slog.DiscardHandler), Tell: func(error) {}}.Run(ctx)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n.place = &place
	return nil
}

// TestFirstStartInEveryOrder starts three nodes one minute apart, in each order:
// the lowest tag forms the cluster once the last is up, and all agree.
func TestFirstStartInEveryOrder(t *testing.T) {
	orders := []string{"ABC", "ACB", "BAC", "BCA", "CAB", "CBA"}
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newFakePeers("A", "B", "C")
				var wg sync.WaitGroup
				for _, tag := range order {
					wg.Go(func() {
						if err := v.start(t.Context(), string(tag)); err != nil {
							t.Errorf("%c: %v", tag, err)
						}
					})
					time.Sleep(time.Minute)
				}
				wg.Wait()
				for tag, n := range v.nodes {
					if n.place == nil || n.place.Tag != tag || n.place.Founder != (tag == "A") {
						t.Fatalf("%s has the place %+v", tag, n.place)
					}
					if !bytes.Equal(n.place.ClusterID, v.nodes["A"].place.ClusterID) || len(n.place.Members) != 3 {
						t.Errorf("%s is in another cluster: %+v", tag, n.place)
					}
				}
			})
		})
	}
}

// TestFirstStartWaitsForAll: no cluster is formed before all nodes answer.
func TestFirstStartWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakePeers("A", "B", "C")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		for _, tag := range []string{"A", "B"} {
			wg.Go(func() {
				err := v.start(ctx, tag)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "C at C:7400 does not answer") {
					t.Errorf("%s: %v, want a deadline that names C", tag, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestFirstStartAgainstMisuse has one node each time that keeps the cluster
// from being formed.
func TestFirstStartAgainstMisuse(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(v *fakePeers)
		want  string
	}{
		{"another list", func(v *fakePeers) { v.nodes["B"].peers["B"] = "elsewhere:7400" }, "another list"},
		{"the same address twice", func(v *fakePeers) {
			v.nodes["A"].peers["C"], v.nodes["B"].peers["C"] = "B:7400", "B:7400"
		}, `at the address of C, node "B" answers`},
		{"watchers only", func(v *fakePeers) {
			for _, n := range v.nodes {
				n.self.Watcher = true
			}
		}, "watchers"},
		{"a bad id", func(v *fakePeers) { v.nodes["B"].self.Id = []byte("short") }, "no Raft id"},
		{"another node at the own address", func(v *fakePeers) {
			v.nodes["A"].peers["A"] = "B:7400"
		}, "at the address of A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newFakePeers("A", "B", "C")
				tt.spoil(v)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for _, n := range v.nodes {
					n.up = true
				}
				err := v.start(ctx, "A")
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), tt.want) {
					t.Errorf("error %v, want a deadline that says %q", err, tt.want)
				}
			})
		})
	}
}

// TestFirstStartOfWatcher leaves the forming to the lowest tag that can lead.
func TestFirstStartOfWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakePeers("A", "B")
		v.nodes["A"].self.Watcher = true
		var wg sync.WaitGroup
		for tag := range v.nodes {
			wg.Go(func() {
				if err := v.start(t.Context(), tag); err != nil {
					t.Errorf("%s: %v", tag, err)
				}
			})
		}
		wg.Wait()
		if !v.nodes["B"].place.Founder || v.nodes["A"].place.Founder {
			t.Error("the watcher formed the cluster")
		}
		if m := v.nodes["B"].place.Members; m[0].GetVoter() || !m[1].GetVoter() {
			t.Errorf("votes: %v", m)
		}
	})
}

// TestFirstStartMeetsCluster starts a node whose peers have a cluster.
func TestFirstStartMeetsCluster(t *testing.T) {
	removed := testMember("C", 3)
	removed.Removed = true
	before := testMember("C", 9)
	before.Removed = true
	tests := []struct {
		name string
		c    *raftlogv1.Member // C as the cluster knows it
		want error
		says string
	}{
		{"it is in it", testMember("C", 3), nil, ""},
		{"its tag has another id", testMember("C", 9), ErrTagTaken, "idnode cluster remove C"},
		{"its tag had another id", before, ErrTagTaken, "C was removed, and its tag is never given again"},
		{"it was removed", removed, ErrRemoved, "C"},
		{"it is not in it", nil, ErrNotInCluster, "--join"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := newFakePeers("A", "B", "C")
			members := []*raftlogv1.Member{v.nodes["A"].self, v.nodes["B"].self}
			if tt.c != nil {
				members = append(members, tt.c)
			}
			place := found(members)
			v.nodes["B"].place, v.nodes["B"].up = &place, true // A is down.
			err := v.start(t.Context(), "C")
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error does not say %q: %v", tt.says, err)
			}
		})
	}
}

// silent is fakePeers of which one accepts calls and never answers.
type silent struct {
	*fakePeers
	tag string
}

// Hello implements Greeter.
func (s silent) Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	if tag == s.tag {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.fakePeers.Hello(ctx, tag, address, req)
}

// TestFirstStartEndsWithTheFirstAnswerFromACluster: the first node that knows of a cluster
// is enough.
func TestFirstStartEndsWithTheFirstAnswerFromACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakePeers("A", "B", "C")
		members := []*raftlogv1.Member{v.nodes["A"].self, v.nodes["B"].self, v.nodes["C"].self}
		v.nodes["A"].up, v.nodes["A"].place = true, &Place{ClusterID: bytes.Repeat([]byte{7}, ClusterIDSize), Members: members}
		began := time.Now()
		place, err := FirstStart{
			Self: v.nodes["C"].self, Peers: v.peers, Greeter: silent{v, "B"},
			Logger: slog.New(slog.DiscardHandler), Tell: func(error) {},
		}.Run(t.Context())
		if took := time.Since(began); err != nil || took > 0 || place.Tag != "C" {
			t.Errorf("after %v: %+v, %v", took, place, err)
		}
	})
}

// TestWipedLowestNode loses the founder's directory after the others adopted its
// cluster: it must not form a second cluster.
func TestWipedLowestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakePeers("A", "B", "C")
		place := found([]*raftlogv1.Member{v.nodes["A"].self, v.nodes["B"].self, v.nodes["C"].self})
		v.nodes["B"].place, v.nodes["C"].place = &place, &place
		v.nodes["A"].self = testMember("A", 8)
		go func() {
			time.Sleep(time.Minute) // A waits for them, alone.
			v.mu.Lock()
			defer v.mu.Unlock()
			v.nodes["B"].up = true
		}()
		if err := v.start(t.Context(), "A"); !errors.Is(err, ErrTagTaken) {
			t.Errorf("error %v, want %v", err, ErrTagTaken)
		}
	})
}

func TestClusterID(t *testing.T) {
	a, b := testMember("A", 1), testMember("B", 2)
	id := ClusterIDOf([]*raftlogv1.Member{a, b})
	if len(id) != ClusterIDSize {
		t.Errorf("the id has %d bytes", len(id))
	}
	if !bytes.Equal(id, ClusterIDOf([]*raftlogv1.Member{b, a})) {
		t.Error("the id depends on the order")
	}
	if bytes.Equal(id, ClusterIDOf([]*raftlogv1.Member{a, testMember("B", 3)})) {
		t.Error("two foundings share an id")
	}
}
