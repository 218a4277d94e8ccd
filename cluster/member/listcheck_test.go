package member

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// never is later than any test lasts.
const never = 1000 * time.Hour

// listedNode is a node that answers at an address between from and until; zero until means
// without end.
type listedNode struct {
	cluster     byte
	from, until time.Duration
	members     []*raftlogv1.Member
}

// fakeGreeter is a Greeter over nodes by address. It has no network: it answers at once.
type fakeGreeter struct {
	began time.Time
	nodes map[string]listedNode
}

// Hello implements Greeter.
func (s fakeGreeter) Hello(_ context.Context, _, address string, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	n, ok := s.nodes[address]
	if now := time.Since(s.began); !ok || now < n.from || n.until > 0 && now >= n.until {
		return nil, errors.New("no answer")
	}
	return &peerv1.HelloResponse{Self: testMember("Z", 99), ClusterId: clusterOf(n.cluster), Members: n.members}, nil
}

func clusterOf(b byte) []byte { return bytes.Repeat([]byte{b}, ClusterIDSize) }

// ownCluster and otherCluster are the ids of the clusters of these tests.
const ownCluster, otherCluster = 1, 2

func foreignFrom(at time.Duration) listedNode { return listedNode{cluster: otherCluster, from: at} }
func ownFrom(at time.Duration) listedNode     { return listedNode{cluster: ownCluster, from: at} }

// listTest is a node B that is started with a list.
type listTest struct {
	list  []Listed
	nodes map[string]listedNode
	// table are members of its own cluster beside A, B and C at A:7400 and so on.
	table []*raftlogv1.Member
	// quorum is when a quorum of its own cluster comes in reach.
	quorum time.Duration
	// ends is when the node ends, at most one pause later, servesAt when it may serve for
	// the first time, and warned whether it warns at the end, after an hour.
	ends, servesAt time.Duration
	warned         bool
}

func peersAt(a, c string) []Listed { return []Listed{{"A", a}, {"B", "B:7400"}, {"C", c}} }

var listTests = map[string]listTest{
	"another cluster's place, all up": {
		list: peersAt("y1", "y2"), nodes: map[string]listedNode{"y1": foreignFrom(0), "y2": foreignFrom(0)},
		quorum: 0, ends: 0, servesAt: never,
	},
	"another cluster's place, by join": {
		list: []Listed{{Address: "y1"}, {Address: "y2"}}, nodes: map[string]listedNode{"y1": foreignFrom(0), "y2": foreignFrom(0)},
		quorum: 0, ends: 0, servesAt: never,
	},
	"another cluster's place, one answer is late": {
		list: peersAt("y1", "y2"), nodes: map[string]listedNode{"y1": foreignFrom(0), "y2": foreignFrom(300 * time.Millisecond)},
		quorum: 0, ends: 300 * time.Millisecond, servesAt: never, warned: true,
	},
	"another cluster's place, in a cold start": {
		list: peersAt("y1", "y2"), nodes: map[string]listedNode{"y1": foreignFrom(time.Minute), "y2": foreignFrom(2 * time.Minute)},
		quorum: never, ends: 2 * time.Minute, servesAt: 0, warned: true,
	},
	"a) a member has moved, another cluster's node is there, and the third is down": {
		list: peersAt("host1", "C:7400"), nodes: map[string]listedNode{"host1": foreignFrom(0)},
		quorum: never, ends: never, servesAt: never, warned: true,
	},
	"a) the third comes up": {
		list: peersAt("host1", "C:7400"), nodes: map[string]listedNode{"host1": foreignFrom(0), "C:7400": ownFrom(time.Minute)},
		quorum: never, ends: never, servesAt: time.Minute, warned: true,
	},
	"a) a quorum is in reach, at addresses that are not listed": {
		list: peersAt("host1", "host2"), nodes: map[string]listedNode{"host1": foreignFrom(0)},
		quorum: 5 * time.Second, ends: never, servesAt: 5 * time.Second, warned: true,
	},
	"a) the third is up": {
		list: peersAt("host1", "C:7400"), nodes: map[string]listedNode{"host1": foreignFrom(0), "C:7400": ownFrom(0)},
		quorum: never, ends: never, servesAt: 0, warned: true,
	},
	"b) another cluster's node at a present member's address, and a slow cold start": {
		list: peersAt("A:7400", "C:7400"), nodes: map[string]listedNode{"A:7400": foreignFrom(0), "C:7400": ownFrom(5 * time.Minute)},
		quorum: never, ends: never, servesAt: 5 * time.Minute, warned: true,
	},
	"b) other clusters' nodes at all members' addresses": {
		list: peersAt("A:7400", "C:7400"), nodes: map[string]listedNode{"A:7400": foreignFrom(0), "C:7400": foreignFrom(0)},
		quorum: never, ends: otherClusterLimit, servesAt: never, warned: true,
	},
	"b) and the quorum has moved": {
		list: peersAt("A:7400", "C:7400"), nodes: map[string]listedNode{"A:7400": foreignFrom(0), "C:7400": foreignFrom(0)},
		quorum: otherClusterLimit / 2, ends: never, servesAt: otherClusterLimit / 2, warned: true,
	},
	"b) and the one at the wrong place has ended": {
		list: peersAt("A:7400", "C:7400"), nodes: map[string]listedNode{
			"A:7400": {cluster: otherCluster, until: otherClusterLimit / 2}, "C:7400": foreignFrom(0),
		},
		quorum: never, ends: never, servesAt: never, warned: true,
	},
	"c) the only one listed is down, and later another cluster's": {
		list: []Listed{{Address: "A:7400"}}, nodes: map[string]listedNode{"A:7400": foreignFrom(30 * time.Minute)},
		quorum: time.Second, ends: never, servesAt: 0, warned: true,
	},
	"c) the only one listed is down, and later another cluster's, where it has moved from": {
		list: []Listed{{Address: "host1"}}, nodes: map[string]listedNode{"host1": foreignFrom(30 * time.Minute)},
		quorum: time.Second, ends: never, servesAt: 0, warned: true,
	},
	"d) the other survivor is not recovered yet": {
		list: peersAt("host1", "C:7400"), nodes: map[string]listedNode{
			"host1": {cluster: otherCluster, members: []*raftlogv1.Member{testMember("B", 2)}}, "C:7400": foreignFrom(0),
		},
		quorum: never, ends: never, servesAt: never, warned: true,
	},
	"d) this one was lost by the recovery": {
		list: peersAt("A:7400", "C:7400"), nodes: map[string]listedNode{
			"A:7400": {cluster: otherCluster, members: []*raftlogv1.Member{removedMember("B", 2)}}, "C:7400": foreignFrom(0),
		},
		quorum: never, ends: otherClusterLimit, servesAt: never, warned: true,
	},
	"a removed member's address is another cluster's": {
		list: []Listed{{"B", "B:7400"}, {"D", "D:7400"}}, nodes: map[string]listedNode{"D:7400": foreignFrom(0)},
		table:  []*raftlogv1.Member{removedMember("D", 4)},
		quorum: never, ends: never, servesAt: 0,
	},
	"no node answers": {
		list: peersAt("A:7400", "C:7400"), quorum: never, ends: never, servesAt: 0,
	},
}

func removedMember(tag string, b byte) *raftlogv1.Member {
	m := testMember(tag, b)
	m.Removed = true
	return m
}

// TestListCheck has the lists of nodes that are where they belong, which go on, and of
// those that are in the place of another cluster's, which end.
func TestListCheck(t *testing.T) {
	for name, tt := range listTests {
		t.Run(name, func(t *testing.T) { synctest.Test(t, tt.run) })
	}
}

func (tt listTest) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	began := time.Now()
	state := NewClusterCheck(slog.New(slog.DiscardHandler))
	state.Begin()
	servedAt := never
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	look := func() {
		now := time.Since(began)
		if now >= tt.quorum {
			state.Quorum(true)
		}
		if state.Err() == nil && servedAt == never {
			servedAt = now
		}
	}
	watch.Go(func() {
		for pause.For(watching, 500*time.Millisecond) {
			look()
		}
	})
	check := ListCheck{
		Self: func() *raftlogv1.Member { return testMember("B", 2) }, ClusterID: clusterOf(ownCluster), Listed: tt.list,
		Members: func() []*raftlogv1.Member {
			return append(tt.table, testMember("A", 1), testMember("B", 2), testMember("C", 3))
		},
		Greeter: fakeGreeter{began, tt.nodes}, State: state,
	}
	err, ended := check.Run(ctx), time.Since(began)
	stop()
	watch.Wait()
	if err == nil {
		look() // It may have ended at once.
	}
	if !errors.Is(err, ErrOtherCluster) {
		if err != nil {
			t.Fatal(err)
		}
		ended = never
	}
	soon := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want || got > want+lastListPause && got != never || (got == never) != (want == never) {
			t.Errorf("%s after %v, want %v", what, got, want)
		}
	}
	soon("ended", ended, tt.ends)
	soon("served", servedAt, tt.servesAt)
	if got := strings.Contains(strings.Join(state.Warnings(), "\n"), "belongs to cluster 0202"); got != tt.warned {
		t.Errorf("warnings %q", state.Warnings())
	}
}

// TestListCheckNamesBothClusters: a person must find out which directory it is.
func TestListCheckNamesBothClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := ListCheck{
			Self: func() *raftlogv1.Member { return testMember("B", 2) }, ClusterID: clusterOf(ownCluster), Listed: []Listed{{"A", "y1"}},
			Members: func() []*raftlogv1.Member { return nil }, Greeter: fakeGreeter{time.Now(), map[string]listedNode{"y1": foreignFrom(0)}},
			State: NewClusterCheck(slog.New(slog.DiscardHandler)),
		}
		err := check.Run(t.Context())
		for _, part := range []string{"0101", "0202", "A at y1", "--peer or --join"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %s", err, part)
			}
		}
	})
}
