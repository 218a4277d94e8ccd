package fsm

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// firsts takes values of an identity and returns where the runs of them begin.
func (l *testLog) firsts(name string, count int64) (firsts []int64) {
	l.t.Helper()
	for _, run := range l.mustApplied(l.do(opNext(name, count))).GetIdentityNext().GetValues() {
		firsts = append(firsts, run.GetFirst())
	}
	return firsts
}

func (l *testLog) claimRefused(id string) bool {
	l.t.Helper()
	r := l.do(opClaimID(id)).GetRefusal()
	if r != nil && r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED {
		l.t.Fatalf("%s: %v", id, r)
	}
	return r != nil
}

// TestValuesAtOrBelowZeroAreSteppedOver after a seed by force, and cannot be claimed
// once they were issued.
func TestValuesAtOrBelowZeroAreSteppedOver(t *testing.T) {
	l := newFormedLog(t)
	l.do(opSeed("users", -12, true, nil))
	for _, id := range []string{"users/-10", "users/-3", "users/0", "users#-9"} {
		if l.claimRefused(id) {
			t.Errorf("%s was refused", id)
		}
	}
	diff(t, []int64{-11, -9, -2, 1}, l.firsts("users", 10))
	for _, id := range []string{"users/-11", "users/-1"} {
		if !l.claimRefused(id) {
			t.Errorf("%s was claimed", id)
		}
	}
}

func TestNumberedClaims(t *testing.T) {
	for id, want := range map[string]int64{
		"a/7": 7, "a/0": 0, "a/-1": -1, "a/-10": -10, "a-b/-100": -100,
		"a/-9223372036854775807": -math.MaxInt64,
	} {
		if n, ok := (claimItem{id: id}).numbered(); !ok || n.value != want || n.separator != '/' {
			t.Errorf("%s: %+v %v", id, n, ok)
		}
	}
	for _, id := range []string{
		"a", "0", "-1", "/0", "a/00", "a/-0", "a/-01", "a/--1", "a-1", "a-0", "a/5-5", "a/-", "a/01",
		"a/-9223372036854775809",
	} {
		if n, ok := (claimItem{id: id}).numbered(); ok {
			t.Errorf("%s: %+v", id, n)
		}
	}
}

// TestAnExhaustedIdentityIsLookedAtOnce: claims in its way are walked again only when
// something has changed, and the answers are those of a walk.
func TestAnExhaustedIdentityIsLookedAtOnce(t *testing.T) {
	const claims = 2000
	start := int64(math.MaxInt64 - 2*claims)
	l := newFormedLog(t)
	l.do(opSeed("users", start, false, nil))
	m := &raftlogv1.Merge{}
	for i := range int64(claims) {
		m.Claims = append(m.Claims, "users/"+itoa(start+2*i+2))
	}
	l.merge(m)
	exhausted := func(count int64) bool {
		return l.mustRefuse("exhausted", opNext("users", count)).GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED
	}
	if !exhausted(1000) || len(l.state.contents.claims.full) != 1 {
		t.Fatalf("remembered: %v", l.state.contents.claims.full)
	}
	if !exhausted(65) { // More than there are pieces.
		t.Error("65 values in 64 pieces")
	}
	for key := range l.state.contents.claims.full {
		l.state.contents.claims.full[key] = fullIdentity{last: start, most: 1}
	}
	if !exhausted(2) {
		t.Error("the claims were looked at again")
	}
	// A claim that is released makes room.
	l.mustApplied(l.do(opReleaseID("users/" + itoa(start+2))))
	diff(t, 63, len(l.firsts("users", 65)))
	// Another last value is a new question.
	if !exhausted(1000) {
		t.Error("1000 values")
	}
	l.do(opSeed("users", start-1000, true, nil))
	l.mustApplied(l.do(opNext("users", 1000)))
	for i := range maxFull + 10 {
		name := fmt.Sprint("full", i)
		l.do(opSeed(name, math.MaxInt64, false, nil))
		l.do(opNext(name, 1))
	}
	if n := len(l.state.contents.claims.full); n > maxFull {
		t.Errorf("%d identities are remembered", n)
	}
}

// TestAReleasedIDCanBeClaimedAgain though an identity has stepped over it; the
// identity never issues it, also when it is set back or forgotten.
func TestAReleasedIDCanBeClaimedAgain(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opClaimID("users/2")))
	diff(t, []int64{1, 3}, l.firsts("users", 3))
	l.mustApplied(l.do(opReleaseID("users/2")))
	l.state = restored(t, snapshotOf(t, l.state))
	if !l.claimRefused("users/1") || l.claimRefused("users/2") {
		t.Fatal("users/1 can be claimed, or users/2 cannot")
	}
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
	if !l.claimRefused("users/2") {
		t.Error("users/2 has two owners")
	}
	l.mustApplied(l.do(opReleaseID("users/2")))
	l.mustRefuse("a second release", opReleaseID("users/2"))
	l.mustApplied(l.do(opSeed("users", 0, true, nil)))
	diff(t, []int64{1, 3}, l.firsts("users", 2))
	l.mustApplied(l.do(opDelete("users", true)))
	diff(t, []int64{1, 3}, l.firsts("users", 2))
	diff(t, &raftlogv1.MergeResult{Claimed: 1}, l.merge(&raftlogv1.Merge{Claims: []string{"users/2"}}))
	if got := l.state.Claims("db", "", "", 10); len(got) != 1 {
		t.Errorf("claims %v", got)
	}
	l.mustApplied(l.do(opReleaseID("users/2")))
	l.mustApplied(l.do(opClaimID("users/2")))
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
}

// TestAnIssuedIDStaysIssued also after it was claimed and released, if an identity
// passed it other than by stepping over the claim: it may have been issued elsewhere.
func TestAnIssuedIDStaysIssued(t *testing.T) {
	for name, pass := range map[string]func(l *testLog){
		"claimed by a merge": func(l *testLog) {
			l.firsts("users", 60)
			diff(t, &raftlogv1.MergeResult{Claimed: 1, Conflicts: []string{"users/50"}}, l.merge(&raftlogv1.Merge{Claims: []string{"users/50"}}))
		},
		"seeded": func(l *testLog) {
			l.claimFirst()
			l.mustApplied(l.do(opSeed("users", 100, false, nil)))
		},
		"seeded by force": func(l *testLog) {
			l.claimFirst()
			l.mustApplied(l.do(opSeed("users", 100, true, nil)))
		},
		"merged": func(l *testLog) {
			l.claimFirst()
			l.merge(&raftlogv1.Merge{Identities: []*raftlogv1.MergeIdentity{{Name: "users", Last: 100}}})
		},
		"a floor": func(l *testLog) {
			l.claimFirst()
			l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 100})))
		},
		"another separator": func(l *testLog) {
			l.claimFirst()
			next := opNext("users", 100)
			next.GetIdentityNext().Separator = "#"
			l.mustApplied(l.do(next))
		},
		"backup and restore": func(l *testLog) { // The backup knows of claims and last values alone.
			m := &raftlogv1.Merge{Claims: []string{"users/50"}, Identities: []*raftlogv1.MergeIdentity{{Name: "users", Last: 100}}}
			diff(t, &raftlogv1.MergeResult{Claimed: 1, Created: 1}, l.merge(m))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFormedLog(t)
			pass(l)
			l.firsts("users", 10)
			l.state = restored(t, snapshotOf(t, l.state))
			l.mustApplied(l.do(opReleaseID("users/50")))
			l.state = restored(t, snapshotOf(t, l.state))
			if !l.claimRefused("users/50") {
				t.Error("an id that may have been issued was claimed")
			}
			diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
		})
	}
}

// TestAReleasedIDIsNotClaimedWhereItMayBeIssuedElsewhere: numbers that a merge, a floor or a seed
// marks as used count as issued, also if an identity here had stepped over them before.
func TestAReleasedIDIsNotClaimedWhereItMayBeIssuedElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		does func(l *testLog)
		free bool
	}{
		"merged above":       {does: func(l *testLog) { l.merge(mergeIdentity("users", 100, false)) }},
		"merged up to it":    {does: func(l *testLog) { l.merge(mergeIdentity("users", 2, false)) }},
		"merged below":       {does: func(l *testLog) { l.merge(mergeIdentity("users", 1, false)) }, free: true},
		"another one merged": {does: func(l *testLog) { l.merge(mergeIdentity("user", 100, false)) }, free: true},
		"a floor":            {does: func(l *testLog) { l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 2}))) }},
		"a floor below":      {does: func(l *testLog) { l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 1}))) }, free: true},
		"seeded above":       {does: func(l *testLog) { l.mustApplied(l.do(opSeed("users", 100, false, nil))) }, free: true},
		"set back, and seeded": {does: func(l *testLog) {
			l.mustApplied(l.do(opSeed("users", 0, true, nil)))
			l.mustApplied(l.do(opSeed("users", 100, false, nil)))
		}},
		"backup and restore": {does: func(l *testLog) {
			l.merge(&raftlogv1.Merge{Claims: []string{"users/2"}, Identities: []*raftlogv1.MergeIdentity{{Name: "users", Last: 2}}})
		}},
	} {
		for _, released := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, released before: %t", name, released), func(t *testing.T) {
				l := newFormedLog(t)
				l.mustApplied(l.do(opClaimID("users/2")))
				diff(t, []int64{1, 3}, l.firsts("users", 3))
				if released {
					l.mustApplied(l.do(opReleaseID("users/2")))
				}
				c.does(l)
				l.state = restored(t, snapshotOf(t, l.state))
				l.do(opReleaseID("users/2"))
				if got := l.claimRefused("users/2"); got == c.free {
					t.Errorf("the claim was refused: %t", got)
				}
				diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
			})
		}
	}
}

// TestASeedDoesNotVisitTheClaimsAboveIt: anybody with the rights to claim and to seed would
// hold up all entries by seeds of one name with many claims.
func TestASeedDoesNotVisitTheClaimsAboveIt(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opClaimID("users/2")))
	l.firsts("users", 3) // It steps over the claim: there is a mark.
	for first := range 32 {
		m := &raftlogv1.Merge{}
		for i := range MaxMerge {
			m.Claims = append(m.Claims, "users/"+itoa(int64(1_000_000+first*MaxMerge+i)))
		}
		l.merge(m)
	}
	runtime.LockOSThread() // Its processor time is measured.
	defer runtime.UnlockOSThread()
	took := measure(func() {
		for i := range int64(5000) {
			l.mustApplied(l.do(opSeed("users", 10+i, false, nil)))
		}
	})
	if took.cpu > time.Second {
		t.Errorf("5000 seeds below %d claims took %v", 32*MaxMerge, took)
	}
}

// TestAMergeReachesTheClaimsUnderAllSeparators up to its value, and none beyond it.
func TestAMergeReachesTheClaimsUnderAllSeparators(t *testing.T) {
	l := newFormedLog(t)
	ids := []string{"users#2", "users/2", "users/3", "users/9", "users~3", "users~9"}
	for _, id := range ids {
		l.mustApplied(l.do(opClaimID(id)))
		l.mustApplied(l.do(opClaimID("user" + id[5:])))
		l.mustApplied(l.do(opClaimID("userss" + id[5:])))
	}
	for _, name := range []string{"user", "users", "userss"} {
		for _, separator := range []string{"#", "/", "~"} {
			l.mustApplied(l.do(opSeed(name, 0, true, nil)))
			next := &raftlogv1.IdentityNext{Name: name, Count: 12, Separator: separator}
			l.mustApplied(l.do(&raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_IdentityNext{IdentityNext: next}}))
		}
	}
	l.merge(mergeIdentity("users", 3, false))
	for _, id := range ids {
		l.mustApplied(l.do(opReleaseID(id)))
		if got, want := l.claimRefused(id), id[6] != '9'; got != want {
			t.Errorf("the claim of %s was refused: %t", id, got)
		}
		l.mustApplied(l.do(opReleaseID("user" + id[5:])))
		if l.claimRefused("user" + id[5:]) {
			t.Errorf("the claim of user%s was refused", id[5:])
		}
	}
	diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
}

// claimFirst claims an id that its identity has not come to.
func (l *testLog) claimFirst() {
	l.t.Helper()
	l.firsts("users", 1)
	l.mustApplied(l.do(opClaimID("users/50")))
}

// TestReleasedIDsAreBounded: ids beyond the bound count as issued.
func TestReleasedIDsAreBounded(t *testing.T) {
	l := newFormedLog(t)
	for from := 1; from <= maxReleased+1; from += MaxMerge {
		m := &raftlogv1.Merge{}
		for i := from; i < from+MaxMerge && i <= maxReleased+1; i++ {
			m.Claims = append(m.Claims, "users/"+itoa(int64(i)))
		}
		l.merge(m)
	}
	diff(t, []int64{maxReleased + 2}, l.firsts("users", 1))
	var releases [][]byte
	for i := range int64(maxReleased + 1) {
		releases = append(releases, encodeOperation(opReleaseID("users/"+itoa(i+1))))
	}
	for _, some := range slices.Collect(slices.Chunk(releases, 1000)) {
		l.apply(raftlog.Group{Operations: some})
	}
	if n := l.state.contents.claims.released.Len(); n != maxReleased {
		t.Errorf("%d released ids are remembered", n)
	}
	if l.claimRefused("users/1") || !l.claimRefused("users/"+itoa(maxReleased+1)) {
		t.Error("not the first ones are remembered")
	}
}

// TestIDsOfNodesAreNotClaimed: those of present and of removed members; other ids of that form are
// claimed.
func TestIDsOfNodesAreNotClaimed(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberRemove{MemberRemove: &raftlogv1.MemberRemove{Tag: "C"}}}))
	for id, refused := range map[string]bool{
		"srv/0000000000000000002-a": true, "usr/3-a": true, "usr:3-b": true, "usr/3-c": true, "a b/x#12-c": true,
		"usr/3-z": false, "usr/03-a": false, "usr/a-3": false, "usr/3a": false, "usr3-a": false, "usr/3-a-b": false,
	} {
		if l.claimRefused(id) != refused {
			t.Errorf("claim %s: refused %t", id, !refused)
		}
	}
}
