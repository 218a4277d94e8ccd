package fsm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestRandomMergesAgreeWithTheModel interleaves merges and floors with ranges and
// returns, and claims and releases with identities that are also seeded below 0. The
// states agree with the model; and, without looking at the model, no counter falls below
// what was merged, no id has two owners, and a claim that was released can be made again.
func TestRandomMergesAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &mergeRun{
			randomRun: randomRun{t: t, model: newModel(), straight: New(Config{}), restored: New(Config{}), now: testTime.UnixNano()},
			used:      map[string]int64{}, owners: map[string]string{}, released: map[string]bool{}, stepped: map[string]bool{},
		}
		r.entry(modelGroup{operations: []*raftlogv1.Operation{opBootstrapABC()}})
		t.Repeat(map[string]func(*rapid.T){
			"operation": r.operation,
			"identity":  r.identityOperation,
			"another":   r.identityOperation,
			"restore":   r.restore,
			"":          r.check,
		})
	})
}

// mergeRun is a randomRun that checks invariants without the model.
type mergeRun struct {
	randomRun
	// used is the lower bound of each counter, by place of its tag.
	used map[string]int64
	// owners are "identity" or "claim", by place of the id.
	owners map[string]string
	// released are ids that nobody has, and that an identity has stepped over.
	released map[string]bool
	// stepped are claimed ids that an identity stepped over. Others that it has passed
	// may have been issued elsewhere.
	stepped map[string]bool
}

// operation applies an operation of any kind.
func (r *mergeRun) operation(t *rapid.T) {
	r.drawOne(t, drawNext, drawDelete, r.drawHiLo, r.drawHiLo, r.drawReturn, r.drawReturn, r.drawReturn, r.drawHiLoSet, r.drawSameSet,
		r.drawSmallMerge, r.drawSmallMerge, drawFloor)
}

// identityOperation applies one on a single identity, and on claims in its way.
func (r *mergeRun) identityOperation(t *rapid.T) {
	r.drawOne(t, drawLowNext, drawLowNext, drawLowSeed, drawNumberedClaim, drawNumberedClaim, drawNumberedRelease, drawNumberedMerge)
}

// drawOne applies an operation of one of the kinds to all, and judges the answer.
func (r *mergeRun) drawOne(t *rapid.T, kinds ...func(*rapid.T) *raftlogv1.Operation) {
	op := rapid.SampledFrom(kinds).Draw(t, "kind")(t)
	if op.Database == "db" {
		op.Database = "x"
	}
	stood := r.identityOf(numberedClaims[0]).last
	var before []bool
	for _, id := range numberedClaims {
		before = append(before, r.passedInState(id))
	}
	r.entry(modelGroup{operations: []*raftlogv1.Operation{op}})
	r.judge(t, op)
	for i, id := range numberedClaims {
		if !before[i] && r.passedInState(id) {
			r.pass(op, id, stood)
		}
		if n, _ := (claimItem{id: id}).numbered(); r.saysUsed(op, n, stood) {
			r.elsewhere(place("x", id))
		}
	}
}

// saysUsed reports whether an operation says that a value is used, wherever it was issued.
func (r *mergeRun) saysUsed(op *raftlogv1.Operation, n numberedItem, stood int64) bool {
	for _, i := range op.GetMerge().GetIdentities() {
		if op.GetDatabase() == "x" && i.GetName() == n.name && n.value <= i.GetLast() {
			return true
		}
	}
	seeded := op.GetDatabase() == "x" && op.GetIdentitySeed().GetName() == n.name && r.last.GetRefusal() == nil
	floor := op.GetMergeCluster().GetFloor()
	return floor > 0 && n.value <= floor || seeded && n.value > stood && n.value <= r.last.GetValue()
}

// elsewhere learns that an id may have been issued elsewhere.
func (r *mergeRun) elsewhere(key string) {
	r.stepped[key] = false
	if r.released[key] {
		r.released[key], r.owners[key] = false, "identity"
	}
}

// judge checks an operation and its answer. It asks the state, never the model.
func (r *mergeRun) judge(t *rapid.T, op *raftlogv1.Operation) {
	result := r.last
	db := op.GetDatabase()
	refused := result.GetRefusal() != nil
	switch o := op.GetOp().(type) {
	case *raftlogv1.Operation_IdentityNext:
		for _, run := range result.GetIdentityNext().GetValues() {
			for v := run.GetFirst(); v <= run.GetLast(); v++ {
				r.give(t, place(db, o.IdentityNext.GetName()+o.IdentityNext.GetSeparator()+itoa(v)), "identity")
			}
		}
	case *raftlogv1.Operation_IdentitySeed:
		if o.IdentitySeed.GetForce() && !refused {
			r.forgetIssued(place(db, o.IdentitySeed.GetName()))
		}
	case *raftlogv1.Operation_IdentityDelete:
		if o.IdentityDelete.GetForget() && !refused {
			r.forgetIssued(place(db, o.IdentityDelete.GetName()))
		}
	case *raftlogv1.Operation_Claim:
		key := place(db, o.Claim.GetId())
		if refused && r.released[key] && !r.upToFloor(o.Claim.GetId()) {
			t.Fatalf("%q was released and cannot be claimed again: %v", key, result)
		}
		if !refused {
			r.stepped[key] = r.released[key]
			r.give(t, key, "claim")
		}
	case *raftlogv1.Operation_Release:
		key := place(db, o.Release.GetId())
		if !refused && r.owners[key] == "claim" {
			delete(r.owners, key)
			r.released[key] = r.stepped[key]
			if !r.stepped[key] && r.passedInState(o.Release.GetId()) {
				r.owners[key] = "identity"
			}
		}
	case *raftlogv1.Operation_Merge:
		for _, h := range o.Merge.GetHilos() {
			key := place(db, h.GetTag())
			r.used[key] = max(r.used[key], h.GetMax())
		}
		for _, id := range o.Merge.GetClaims() {
			if key := place(db, id); r.owners[key] == "" && result.GetMerge().GetClaimed() > 0 {
				r.owners[key] = "claim"
				r.stepped[key], r.released[key] = r.released[key], false
			}
		}
		for _, id := range result.GetMerge().GetConflicts() {
			r.owners[place(db, id)] = "identity" // The claim does not change that.
		}
	case *raftlogv1.Operation_MergeCluster:
		for _, db := range r.straight.Databases() {
			for _, h := range r.straight.HiLos(db, "", "", MaxPage) {
				r.used[place(db, h.Tag)] = max(r.used[place(db, h.Tag)], o.MergeCluster.GetFloor())
			}
			for _, i := range r.straight.Identities(db, "", "", MaxPage) {
				if floor := o.MergeCluster.GetFloor(); floor > 0 && i.Last < floor {
					t.Fatalf("%s is at %d, below the floor", i.Name, i.Last)
				}
			}
		}
	case *raftlogv1.Operation_HiloSet:
		if !refused {
			r.used[place(db, o.HiloSet.GetTag())] = result.GetValue()
		}
	}
	for key, used := range r.used {
		db, tag, _ := strings.Cut(key, "\x00")
		if c, ok := r.straight.HiLo(db, tag); ok && c.Max < used {
			t.Fatalf("%s is at %d, and %d is used", tag, c.Max, used)
		}
	}
}

// give gives an id that nobody must have.
func (r *mergeRun) give(t *rapid.T, key, owner string) {
	if other := r.owners[key]; other != "" {
		t.Fatalf("%q was given to the %s, and then to the %s", key, other, owner)
	}
	r.owners[key] = owner
	r.released[key] = false
}

// upToFloor reports whether an id's number counts as issued elsewhere for good.
func (r *mergeRun) upToFloor(id string) bool {
	n, _ := (claimItem{id: id}).numbered()
	floor := r.straight.contents.floor.names
	return floor > 0 && n.value <= floor
}

// forgetIssued forgets what an identity issued: by force it may come again. An id that
// was claimed nevertheless, by a merge, has the claim alone from then on.
func (r *mergeRun) forgetIssued(identity string) {
	maps.DeleteFunc(r.owners, func(key, owner string) bool {
		return owner == "identity" && (strings.HasPrefix(key, identity+"/") || strings.HasPrefix(key, identity+"#"))
	})
	for _, id := range numberedClaims {
		if key := place("x", id); r.owners[key] == "" && slices.Contains(r.straight.Claims("x", id, "", 1), id) {
			r.owners[key] = "claim"
		}
	}
}

// passedInState reports whether identity a in database x, hidden or not known, has passed
// an id's number.
func (r *mergeRun) passedInState(id string) bool {
	n, _ := (claimItem{id: id}).numbered()
	f := r.identityOf(id)
	return (f.exists || f.last > 0) && n.value <= f.last
}

// identityOf returns the identity of a numbered id in database x.
func (r *mergeRun) identityOf(id string) foundIdentity {
	n, _ := (claimItem{id: id}).numbered()
	c := r.straight.contents
	return c.identities.find(c.databases.numberOf([]byte("x")), n.name, c.floor)
}

// pass learns of an operation with which the identity passed an id: a Next of its
// separator that begins below stepped over it or issued it, all else says that it may be
// used elsewhere.
func (r *mergeRun) pass(op *raftlogv1.Operation, id string, stood int64) {
	n, _ := (claimItem{id: id}).numbered()
	key, next := place("x", id), op.GetIdentityNext()
	switch {
	case next != nil && next.GetSeparator() == string(n.separator) && n.value > stood:
		r.stepped[key] = r.stepped[key] || r.owners[key] == "claim"
	case r.owners[key] == "" && !r.released[key]:
		r.owners[key] = "identity"
	}
}

// numberedClaims are ids of which identities come to many.
var numberedClaims = []string{"a/-2", "a/0", "a/1", "a/2", "a#2"}

func drawNumberedClaim(t *rapid.T) *raftlogv1.Operation {
	return opClaimID(rapid.SampledFrom(numberedClaims).Draw(t, "id"))
}

func drawNumberedRelease(t *rapid.T) *raftlogv1.Operation {
	return opReleaseID(rapid.SampledFrom(numberedClaims).Draw(t, "id"))
}

func drawLowNext(t *rapid.T) *raftlogv1.Operation {
	return opNext("a", rapid.Int64Range(1, 3).Draw(t, "count"))
}

func drawNumberedMerge(t *rapid.T) *raftlogv1.Operation {
	return opMergeOf(&raftlogv1.Merge{Claims: []string{rapid.SampledFrom(numberedClaims).Draw(t, "claim")}})
}

// drawLowSeed seeds below 0 by force, mostly.
func drawLowSeed(t *rapid.T) *raftlogv1.Operation {
	value := rapid.Int64Range(-5, 3).Draw(t, "value")
	return opSeed("a", value, rapid.IntRange(0, 3).Draw(t, "force") > 0, nil)
}

// drawSameSet sets a counter to its present value.
func (r *mergeRun) drawSameSet(t *rapid.T) *raftlogv1.Operation {
	tag, stands := drawName(t), r.model.names
	if h := r.model.hilos[place("x", tag)]; h != nil {
		stands = h.max
	}
	return opHiLoSetTo(tag, stands, stands)
}

func drawFloor(t *rapid.T) *raftlogv1.Operation {
	floor := rapid.SampledFrom([]int64{0, 0, 1, 3, 70}).Draw(t, "floor")
	return opMergeClusterOf(&raftlogv1.MergeCluster{Floor: floor})
}

// drawSmallMerge merges values near those that are there, so that they lie within
// ranges.
func (r *mergeRun) drawSmallMerge(t *rapid.T) *raftlogv1.Operation {
	op, tag := opMergeOf(&raftlogv1.Merge{}), drawName(t)
	op.Database = "x"
	m := op.GetMerge()
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		m.Identities = []*raftlogv1.MergeIdentity{{
			Name: tag, Last: rapid.Int64Range(-2, 8).Draw(t, "last"),
			Hidden: rapid.Bool().Draw(t, "hidden"),
		}}
	default:
		most := int64(40)
		if h := r.model.hilos[place(op.GetDatabase(), tag)]; h != nil {
			most = h.max + 1
		}
		if most < 1<<40 {
			m.Hilos = []*raftlogv1.MergeHiLo{{Tag: tag, Max: rapid.Int64Range(max(0, most-40), most).Draw(t, "max")}}
		}
	}
	return op
}
