package fsm

import (
	"bytes"
	"crypto/sha256"
	"math"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// usedLog returns a log of a cluster with a bit of everything.
func usedLog(t testing.TB) *testLog {
	t.Helper()
	l := newFormedLog(t)
	l.announce("A")
	l.announce("B")
	l.mustApplied(l.do(opNext("users", 3)))
	l.mustApplied(l.do(opSeed("low", -5, true, nil)))
	l.mustApplied(l.do(opSeed("high", math.MaxInt64-1, false, nil)))
	l.mustApplied(l.do(opSeed("gone", 7, false, nil)))
	l.mustApplied(l.do(opDelete("gone", false)))
	l.mustApplied(l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "orders", Token: 9})))
	l.mustApplied(l.do(opClaimID("users/9")))
	l.mustApplied(l.do(opRaiseEtags("A", map[string]uint64{"db": 1000})))
	l.mustApplied(l.do(keyed(opNext("users", 1), key(1, 1))))
	return l
}

func TestARecoveryRaisesEverything(t *testing.T) {
	l := usedLog(t)
	done, err := l.state.Recover(Recovery{Keep: []string{"A"}, SkipAhead: 100})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, []string{"B", "C"}, done.Removed)
	if done.Epoch != 1 || done.Raised != 5 || !bytes.Equal(done.ClusterID, l.state.ClusterID()) || bytes.Equal(done.ClusterID, testCluster) {
		t.Errorf("%+v", done)
	}
	for name, want := range map[string]int64{"users": 104, "low": 95, "high": math.MaxInt64} {
		if c, _ := l.state.Identity("db", name); c.Last != want {
			t.Errorf("%s is at %d", name, c.Last)
		}
	}
	if c, _ := l.state.HiLo("db", "orders"); c.Max != 132 || c.Peak != 132 || len(c.Outstanding) > 0 {
		t.Errorf("orders: %+v", c)
	}
	if names, epoch := l.state.Floor(); names != 100 || epoch != 1 {
		t.Errorf("floor %d, epoch %d", names, epoch)
	}
	if e := l.state.Etags(nodeNamed("node A")); e.GetCeilings()[0].GetFloor() != 1100 {
		t.Errorf("etags of A: %v", e)
	}
	counts := l.state.Counts()
	if counts.Members != 1 || counts.RemovedMembers != 2 || counts.Sessions != 0 || counts.Requests == 0 {
		t.Errorf("%+v", counts)
	}
	if want := hashFromScratch(l.state.contents); want != l.state.contents.hash() {
		t.Errorf("hash %x, from scratch %x", l.state.contents.hash(), want)
	}
	_, want := l.state.Hash()
	if _, got := restored(t, snapshotOf(t, l.state)).Hash(); got != want {
		t.Errorf("hash %x after a snapshot, before %x", got, want)
	}
}

// TestARecoveryDropsJoinTokens: a token may have let a node in where only the lost
// members know of it, and must not let in another.
func TestARecoveryDropsJoinTokens(t *testing.T) {
	l := newFormedLog(t)
	hash := sha256.Sum256([]byte("token"))
	l.mustApplied(l.do(&raftlogv1.Operation{Op: &raftlogv1.Operation_JoinTokenCreate{JoinTokenCreate: &raftlogv1.JoinTokenCreate{
		TokenHash: hash[:], ValidNanos: int64(time.Hour),
	}}}))
	if refusal := l.state.CheckJoinToken(hash[:], "D"); refusal != nil {
		t.Fatal(refusal)
	}
	if _, err := l.state.Recover(Recovery{Keep: []string{"A"}}); err != nil {
		t.Fatal(err)
	}
	if l.state.CheckJoinToken(hash[:], "D") == nil {
		t.Error("the token lets a node in")
	}
	if want := hashFromScratch(l.state.contents); want != l.state.contents.hash() {
		t.Errorf("hash %x, from scratch %x", l.state.contents.hash(), want)
	}
}

func TestASecondRecoveryGoesOnAboveTheFirst(t *testing.T) {
	l := usedLog(t)
	first, err := l.state.Recover(Recovery{Keep: []string{"A", "B"}, SkipAhead: 100})
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.state.Recover(Recovery{Keep: []string{"A"}, SkipAhead: 100})
	if err != nil {
		t.Fatal(err)
	}
	if names, epoch := l.state.Floor(); names != 200 || epoch != 2 || second.Epoch != 2 {
		t.Errorf("floor %d, epoch %d", names, epoch)
	}
	if bytes.Equal(first.ClusterID, second.ClusterID) {
		t.Error("the same cluster id twice")
	}
}

// TestSurvivorsOfDifferentRecoveriesDoNotMeet: their states would differ.
func TestSurvivorsOfDifferentRecoveriesDoNotMeet(t *testing.T) {
	recoverIt := func(r Recovery) (string, uint64) {
		l := usedLog(t)
		done, err := l.state.Recover(r)
		if err != nil {
			t.Fatal(err)
		}
		_, hash := l.state.Hash()
		return string(done.ClusterID), hash
	}
	id, hash := recoverIt(Recovery{Keep: []string{"A", "B"}, SkipAhead: 100})
	if again, same := recoverIt(Recovery{Keep: []string{"B", "A", "B"}, SkipAhead: 100}); again != id || same != hash {
		t.Error("the same recovery led to another cluster")
	}
	for _, r := range []Recovery{{Keep: []string{"A"}, SkipAhead: 100}, {Keep: []string{"A", "B"}, SkipAhead: 101}} {
		if other, _ := recoverIt(r); other == id {
			t.Errorf("%+v led to the same cluster", r)
		}
	}
}

func TestRecoveriesThatAreRefused(t *testing.T) {
	l := usedLog(t)
	for name, r := range map[string]Recovery{
		"nobody":              {},
		"a stranger":          {Keep: []string{"Z"}},
		"counters go back":    {Keep: []string{"A"}, SkipAhead: -1},
		"nobody of them vote": {Keep: []string{"W"}},
	} {
		l.mustNotChange(func() {
			if _, err := l.state.Recover(r); err == nil {
				t.Errorf("%s: accepted", name)
			}
		})
	}
	if _, err := New(Config{}).Recover(Recovery{Keep: []string{"A"}}); err == nil {
		t.Error("an empty state was recovered")
	}
}

// TestARecoveredStateServes under its new id only.
func TestARecoveredStateServes(t *testing.T) {
	l := usedLog(t)
	old := l.encode()
	done, err := l.state.Recover(Recovery{Keep: []string{"A"}, SkipAhead: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.state.Apply(l.index+1, old); err == nil {
		t.Error("an entry of the cluster before was applied")
	}
	again := New(Config{})
	if err := again.Restore(bytes.NewReader(snapshotOf(t, l.state))); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.ClusterID(), done.ClusterID) {
		t.Error("a snapshot is of another cluster")
	}
}

// TestARecoveryForgetsHowOftenNodesStarted: a survivor's directory may have been set back before.
func TestARecoveryForgetsHowOftenNodesStarted(t *testing.T) {
	l := newFormedLog(t)
	for _, tag := range []string{"A", "B"} {
		m := testMember(tag)
		m.Starts, m.Process = 9, 1
		l.mustApplied(l.raw(announceOperation(m)))
	}
	if _, err := l.state.Recover(Recovery{Keep: []string{"A", "B"}}); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"A", "B"} {
		if m := l.state.contents.members.byTag(tag); m.GetRemoved() || m.GetStarts() != 0 || m.GetProcess() != 0 {
			t.Errorf("%v", m)
		}
	}
	if want := hashFromScratch(l.state.contents); want != l.state.contents.hash() {
		t.Errorf("hash %x, from scratch %x", l.state.contents.hash(), want)
	}
}
