package fsm

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func opMergeOf(m *raftlogv1.Merge) *raftlogv1.Operation {
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_Merge{Merge: m}}
}

func opMergeClusterOf(m *raftlogv1.MergeCluster) *raftlogv1.Operation {
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_MergeCluster{MergeCluster: m}}
}

func mergeIdentity(name string, last int64, hidden bool) *raftlogv1.Merge {
	return &raftlogv1.Merge{Identities: []*raftlogv1.MergeIdentity{{Name: name, Last: last, Hidden: hidden}}}
}

func mergeHiLo(tag string, highest, peak int64) *raftlogv1.Merge {
	return &raftlogv1.Merge{Hilos: []*raftlogv1.MergeHiLo{{Tag: tag, Max: highest, Peak: peak}}}
}

func (l *testLog) merge(m *raftlogv1.Merge) *raftlogv1.MergeResult {
	l.t.Helper()
	return l.mustApplied(l.do(opMergeOf(m))).GetMerge()
}

// TestNoRangeComesBackBelowAMergedMax: numbers that a file has as taken stay taken, also where Max
// has passed them already.
func TestNoRangeComesBackBelowAMergedMax(t *testing.T) {
	for _, c := range []struct {
		merged, low     int64 // low is of the range that is issued after the return
		first, returned bool  // whether the second range, and then the first, comes back
	}{
		{0, 1, true, true},
		{32, 33, true, false},
		{33, 65, false, false},
		{40, 65, false, false},
		{64, 65, false, false},
		{100, 101, false, false},
	} {
		t.Run(fmt.Sprint(c.merged), func(t *testing.T) {
			l := newFormedLog(t)
			var issued []*raftlogv1.HiLoNextResult
			for token := range uint64(2) {
				issued = append(issued, l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "orders", Token: token})).GetHiloNext())
			}
			l.merge(mergeHiLo("orders", c.merged, 0))
			diff(t, c.first, l.giveBack("orders", issued[1]))
			diff(t, c.returned, l.giveBack("orders", issued[0]))
			diff(t, c.low, l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "orders"})).GetHiloNext().GetLow())
			if want := hashFromScratch(l.state.contents); want != l.state.contents.hash() {
				t.Errorf("hash %x, from scratch %x", l.state.contents.hash(), want)
			}
		})
	}
}

// giveBack returns a wholly unused range, and reports whether it was accepted.
func (l *testLog) giveBack(tag string, r *raftlogv1.HiLoNextResult) bool {
	l.t.Helper()
	return l.do(opReturn(&raftlogv1.HiLoReturn{
		Tag: tag, Low: r.GetLow(), High: r.GetHigh(), Last: r.GetLow() - 1, Token: r.GetToken(), CheckToken: true,
	})).GetHiloReturn().GetReturned()
}

// TestMergesThatAreRefused leaves the state as it is.
func TestMergesThatAreRefused(t *testing.T) {
	long := string(make([]byte, docid.MaxNameBytes+1))
	many := &raftlogv1.Merge{}
	for i := range MaxMerge + 1 {
		many.Claims = append(many.Claims, fmt.Sprint("c", i))
	}
	l := newFormedLog(t)
	l.do(opSet("max-identities", 2))
	l.do(opNext("users", 1))
	for name, m := range map[string]*raftlogv1.Merge{
		"no name":          mergeIdentity("", 1, false),
		"a long name":      mergeIdentity(long, 1, false),
		"a negative Max":   mergeHiLo("users", -1, 0),
		"a negative Peak":  mergeHiLo("users", 1, -1),
		"no claim":         {Claims: []string{""}},
		"too many":         many,
		"over the limit":   {Identities: []*raftlogv1.MergeIdentity{{Name: "a"}, {Name: "b"}}, Claims: []string{"x"}},
		"one bad, one not": {Claims: []string{"x", ""}},
	} {
		l.mustRefuse(name, opMergeOf(m))
	}
}

// mustRefuse applies an operation that is to be refused and to change nothing.
func (l *testLog) mustRefuse(name string, op *raftlogv1.Operation) *raftlogv1.Refusal {
	l.t.Helper()
	_, before := l.state.Hash()
	r := l.do(op).GetRefusal()
	if _, after := l.state.Hash(); r == nil || before != after {
		l.t.Errorf("%s: refused with %v, changed: %v", name, r, before != after)
	}
	return r
}

// TestANameThatIsMergedTwiceNeedsRoomOnce, of each kind.
func TestANameThatIsMergedTwiceNeedsRoomOnce(t *testing.T) {
	l := newFormedLog(t)
	for _, key := range []string{"max-identities", "max-hilos", "max-claims", "max-databases"} {
		l.do(opSet(key, 1))
	}
	l.do(opSet("max-name-bytes-total", 3))
	a := &raftlogv1.Merge{
		Identities: []*raftlogv1.MergeIdentity{{Name: "a", Last: 1}, {Name: "a", Last: 2}},
		Hilos:      []*raftlogv1.MergeHiLo{{Tag: "a"}, {Tag: "a", Max: 2}}, Claims: []string{"a", "a"},
	}
	diff(t, &raftlogv1.MergeResult{Created: 2, Raised: 2, Claimed: 1, Unchanged: 1}, l.merge(a))
	l.mustRefuse("another", opMergeOf(mergeIdentity("b", 1, false)))
}

func TestUnknownNamesBeginAboveTheFloor(t *testing.T) {
	l := newFormedLog(t)
	l.do(opNext("known", 3))
	diff(t, int64(1000), l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 1000})).GetMergeCluster().GetFloor())
	diff(t, int64(1000), l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 10})).GetMergeCluster().GetFloor())
	for name, want := range map[string]int64{"known": 1001, "new": 1001} {
		if got := l.do(opNext(name, 1)).GetIdentityNext().GetValues()[0].GetFirst(); got != want {
			t.Errorf("%s begins at %d", name, got)
		}
	}
	if low := l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "new"})).GetHiloNext().GetLow(); low != 1001 {
		t.Errorf("a HiLo counter begins at %d", low)
	}
	diff(t, int64(1000), l.do(opSeed("seeded", 5, false, nil)).GetValue())
	if c, ok := l.state.HiLo("nowhere", "unknown"); !ok || c.Max != 1000 {
		t.Errorf("a client that raises Max by itself reads %v %v", c, ok)
	}
	if r := l.do(opClaimID("unknown/1000")).GetRefusal(); r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_ID_CLAIMED {
		t.Errorf("an id that may have been issued was claimed: %v", r)
	}
	l.mustApplied(l.do(opClaimID("unknown/1001")))
	l.mustApplied(l.do(opClaimID("me@example.org")))
	// A forgotten name is unknown.
	l.mustApplied(l.do(opDelete("known", true)))
	if got := l.do(opNext("known", 1)).GetIdentityNext().GetValues()[0].GetFirst(); got != 1001 {
		t.Errorf("a forgotten name begins at %d", got)
	}
	same := restored(t, snapshotOf(t, l.state))
	if names, epoch := same.Floor(); names != 1000 || epoch != 0 {
		t.Errorf("after a snapshot the floor is %d, the epoch %d", names, epoch)
	}
}

func TestGivenTagsStayGiven(t *testing.T) {
	l := newFormedLog(t)
	other := func(tag string) *raftlogv1.GivenTag {
		return &raftlogv1.GivenTag{Tag: tag, Id: nodeNamed("other " + tag), Etags: []*raftlogv1.EtagCeiling{{Database: "db", Floor: 500}}}
	}
	same := &raftlogv1.GivenTag{Tag: "A", Id: nodeNamed("node A")}
	got := l.mustApplied(l.do(opMergeClusterOf(&raftlogv1.MergeCluster{Tags: []*raftlogv1.GivenTag{
		same,
		{Tag: "D", Id: nodeNamed("other D")},
		other("D"), other("E"),
	}})))
	diff(t, int64(2), got.GetMergeCluster().GetGiven())
	if tag := l.do(&raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAdd{MemberAdd: &raftlogv1.MemberAdd{
		Member: &raftlogv1.Member{Id: nodeNamed("new")},
	}}}).GetMember().GetMember().GetTag(); tag != "F" {
		t.Errorf("the next tag is %q", tag)
	}
	r := l.mustRefuse("a tag of a member",
		opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 9, Tags: []*raftlogv1.GivenTag{other("G"), other("B")}}))
	if r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN {
		t.Errorf("refused with %v", r)
	}
	for name, m := range map[string]*raftlogv1.MergeCluster{
		"a negative floor": {Floor: -1},
		"no id":            {Tags: []*raftlogv1.GivenTag{{Tag: "G"}}},
		"no tag":           {Tags: []*raftlogv1.GivenTag{{Id: nodeNamed("x")}}},
		"a known id":       {Tags: []*raftlogv1.GivenTag{{Tag: "G", Id: nodeNamed("node A")}}},
		"two of one tag":   {Tags: []*raftlogv1.GivenTag{other("G"), {Tag: "G", Id: nodeNamed("x")}}},
		"two of one id":    {Tags: []*raftlogv1.GivenTag{other("G"), {Tag: "H", Id: nodeNamed("other G")}}},
		"no database of etag": {
			ShareTags: true,
			Tags:      []*raftlogv1.GivenTag{{Tag: "B", Id: nodeNamed("x"), Etags: []*raftlogv1.EtagCeiling{{}}}},
		},
	} {
		l.mustRefuse(name, opMergeClusterOf(m))
	}
}

func TestASharedTagGoesOnAboveTheOthersEtags(t *testing.T) {
	l := newFormedLog(t)
	var told []*raftlogv1.EtagRecord
	l.state.cfg.EtagFloors = func(e *raftlogv1.EtagRecord) {
		if string(e.GetNode()) == string(nodeNamed("node B")) {
			told = append(told, e)
		}
	}
	l.state.contents.etags.floors = l.state.cfg.EtagFloors
	l.announce("B")
	merge := &raftlogv1.MergeCluster{ShareTags: true, EtagFloor: 50, Tags: []*raftlogv1.GivenTag{
		{Tag: "B", Id: nodeNamed("old B"), Etags: []*raftlogv1.EtagCeiling{{Database: "db", Floor: 500}}},
	}}
	diff(t, []string{"B"}, l.do(opMergeClusterOf(merge)).GetMergeCluster().GetShared())
	want := &raftlogv1.EtagRecord{
		Node: nodeNamed("node B"), Start: 1, Floor: 50, Ceilings: []*raftlogv1.EtagCeiling{{Database: "db", Floor: 500}},
	}
	diff(t, []*raftlogv1.EtagRecord{want}, told)
	_, once := l.state.Hash()
	l.do(opMergeClusterOf(merge))
	if _, twice := l.state.Hash(); once != twice {
		t.Error("a second merge changed something")
	}
	l.announce("B")
	if e := l.state.Etags(nodeNamed("node B")); e.GetFloor() != 50 || e.GetCeilings()[0].GetFloor() != 500 {
		t.Errorf("after a start: %v", e)
	}
	var again []byte
	later := New(Config{EtagFloors: func(e *raftlogv1.EtagRecord) { again = e.GetNode() }})
	if err := later.Restore(bytes.NewReader(snapshotOf(t, l.state))); err != nil {
		t.Fatal(err)
	}
	diff(t, nodeNamed("node B"), again)
}

// TestMergesAreMaxima: any number of merges, in any order and repeated, lead to
// the same state, and nothing is ever lower than before.
func TestMergesAreMaxima(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		merges := rapid.SliceOfN(rapid.Custom(drawMerge), 1, 8).Draw(r, "merges")
		apply := func(order []*raftlogv1.Merge) *State {
			l := newFormedLog(t)
			l.do(opNext("a", 3))
			l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "a"}))
			for _, m := range order {
				before := l.values()
				l.merge(m)
				for name, value := range l.values() {
					if value < before[name] {
						r.Fatalf("%s fell from %d to %d", name, before[name], value)
					}
				}
			}
			if want := hashFromScratch(l.state.contents); want != l.state.contents.hash() {
				r.Fatalf("hash %x, from scratch %x", l.state.contents.hash(), want)
			}
			return l.state
		}
		_, once := apply(merges).Hash()
		shuffled := rapid.Permutation(merges).Draw(r, "order")
		_, other := apply(append(slices.Clone(shuffled), merges...)).Hash()
		if once != other {
			r.Fatal("order or repetition shows")
		}
	})
}

// values are all counters of the database.
func (l *testLog) values() map[string]int64 {
	values := map[string]int64{}
	for _, i := range l.state.Identities("db", "", "", MaxPage) {
		values["identity "+i.Name] = i.Last
	}
	for _, h := range l.state.HiLos("db", "", "", MaxPage) {
		values["max "+h.Tag], values["peak "+h.Tag] = h.Max, h.Peak
	}
	return values
}

func drawMerge(r *rapid.T) *raftlogv1.Merge {
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	value := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Just(int64(math.MaxInt64)))
	m := &raftlogv1.Merge{}
	for range rapid.IntRange(0, 3).Draw(r, "identities") {
		m.Identities = append(m.Identities, &raftlogv1.MergeIdentity{Name: name.Draw(r, "name"), Last: value.Draw(r, "last")})
	}
	for range rapid.IntRange(0, 3).Draw(r, "hilos") {
		m.Hilos = append(m.Hilos, &raftlogv1.MergeHiLo{Tag: name.Draw(r, "tag"), Max: value.Draw(r, "max"), Peak: value.Draw(r, "peak")})
	}
	for range rapid.IntRange(0, 2).Draw(r, "claims") {
		m.Claims = append(m.Claims, fmt.Sprintf("%s/%d", name.Draw(r, "claimed"), rapid.IntRange(1, 9).Draw(r, "value")))
	}
	return m
}

// TestAPreviewIsWhatTheMergeDoes, and changes nothing.
func TestAPreviewIsWhatTheMergeDoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newFormedLog(t)
		l.do(opNext("a", 3))
		l.merge(drawMerge(r))
		m := drawMerge(r)
		if repeats(m) {
			return // A preview does not see what the same merge did before.
		}
		_, before := l.state.Hash()
		changes, preview := l.state.PreviewMerge("db", m)
		if _, after := l.state.Hash(); before != after {
			r.Fatal("the preview changed something")
		}
		did := l.merge(m)
		changed := did.GetCreated() + did.GetRaised() + did.GetClaimed()
		if !proto.Equal(did, preview) || len(changes) != int(changed) {
			r.Fatalf("previewed %v with %d changes, did %v", preview, len(changes), did)
		}
	})
}

func repeats(m *raftlogv1.Merge) bool {
	seen := map[string]bool{}
	again := false
	see := func(name string) { again, seen[name] = again || seen[name], true }
	for _, i := range m.GetIdentities() {
		see("i" + i.GetName())
	}
	for _, h := range m.GetHilos() {
		see("h" + h.GetTag())
	}
	for _, id := range m.GetClaims() {
		see("c" + id)
	}
	return again
}

// TestMergesNeedTheRightToTheCluster: a restore concerns everybody's counters.
func TestMergesNeedTheRightToTheCluster(t *testing.T) {
	for _, kind := range []*raftlogv1.Operation{opMergeOf(mergeIdentity("a", 1, false)), opMergeClusterOf(&raftlogv1.MergeCluster{})} {
		o, err := op.Decode(encodeOperation(kind))
		if err != nil {
			t.Fatal(err)
		}
		if need, _ := needOf(&o); need != rights.Cluster {
			t.Errorf("%T needs %s", kind.GetOp(), need)
		}
	}
}

// TestTheRightToTheClusterOnOneDatabaseMergesNothing: the right counts on every
// database only, as for members, settings and roles.
func TestTheRightToTheClusterOnOneDatabaseMergesNothing(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opRoles(t, map[string]string{"ops": "*", "shop": "db"})))
	for who, refused := range map[string]bool{"ops": false, "shop": true} {
		op := opMergeOf(mergeIdentity("invoices", 5, false))
		op.Principal = &who
		if r := l.do(op).GetRefusal(); (r.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED) != refused {
			t.Errorf("a merge by %s: %v", who, r)
		}
	}
}

// TestPrincipalsHaveAKind: a plain principal is the name of a host.
func TestPrincipalsHaveAKind(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opRoles(t, map[string]string{"ops": "*", "dns:shop": "*", "spiffe://x": "*"})))
	for who, want := range map[string]bool{
		"ops": true, "dns:ops": true, "uri:ops": false, "dns:shop": true, "shop": true,
		"uri:spiffe://x": true, "spiffe://x": true, "dns:spiffe://x": false,
	} {
		op := opMergeOf(mergeIdentity("invoices", 5, false))
		op.Principal = &who
		if r := l.do(op).GetRefusal(); (r == nil) != want {
			t.Errorf("a merge by %s: %v, want allowed %v", who, r, want)
		}
	}
}

// opRoles gives principals the right to the cluster on a database each.
func opRoles(t testing.TB, databases map[string]string) *raftlogv1.Operation {
	t.Helper()
	var roles []rights.Role
	for who, database := range databases {
		roles = append(roles, rights.Role{
			Name: who, Principals: []string{who}, Grants: []rights.Grant{{Database: database, Rights: rights.Cluster}},
		})
	}
	table, err := rights.New(roles, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := rights.Encode(table)
	if err != nil {
		t.Fatal(err)
	}
	author := "ops"
	return &raftlogv1.Operation{Principal: &author, Op: &raftlogv1.Operation_RolesSet{RolesSet: &raftlogv1.RolesSet{Table: encoded}}}
}
