package fsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// TestRandomOperationsAgreeWithTheModel feeds the same random log to the model
// and to two states, of which one is thrown away and restored from its snapshot
// now and then. Results, reads and hashes must agree all the way.
func TestRandomOperationsAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomRun{t: t, model: newModel(), straight: New(Config{}), restored: New(Config{}), now: testTime.UnixNano()}
		if rapid.IntRange(0, 9).Draw(t, "unformed") > 0 {
			r.entry(modelGroup{operations: []*raftlogv1.Operation{opBootstrapABC()}})
		}
		t.Repeat(map[string]func(*rapid.T){
			"operations": r.operations,
			"session":    r.session,
			"again":      r.again,
			"restore":    r.restore,
			"skip":       r.skip,
			"":           r.check,
		})
	})
}

func opBootstrapABC() *raftlogv1.Operation {
	b := &raftlogv1.Bootstrap{
		ClusterId: testCluster,
		Members:   []*raftlogv1.Member{testMember("A"), testMember("B"), testMember("C")},
	}
	return &raftlogv1.Operation{Op: &raftlogv1.Operation_Bootstrap{Bootstrap: b}}
}

// randomRun is one log and those who follow it.
type randomRun struct {
	t                  *rapid.T
	model              *model
	straight, restored *State
	index              uint64
	now                int64
	sent               []modelGroup // with a session
	// last is the newest result.
	last *raftlogv1.Result
}

// operations applies an entry without a session.
func (r *randomRun) operations(t *rapid.T) {
	r.now += rapid.Int64Range(-10, 100).Draw(t, "seconds") * 1e9
	n := rapid.IntRange(1, 3).Draw(t, "groups")
	groups := make([]modelGroup, n)
	for i := range groups {
		groups[i].operations = r.draw(t)
	}
	r.entry(groups...)
}

// session applies a group of a session, in order or a little out of it.
func (r *randomRun) session(t *rapid.T) {
	origin := nodeNamed("node " + rapid.SampledFrom([]string{"A", "B", "D"}).Draw(t, "origin"))
	g := modelGroup{origin: origin, operations: r.draw(t)}
	if s := r.model.sessions[string(origin)]; s != nil {
		g.session = s.number
		g.acknowledged = s.acknowledged + rapid.Uint64Range(0, 2).Draw(t, "acknowledged")
		g.sequence = s.acknowledged + rapid.SampledFrom([]uint64{1, 1, 2, 2, 3, 4, 64, 65, 66, 67}).Draw(t, "sequence")
	}
	r.sent = append(r.sent, g)
	r.entry(g)
}

// again applies a group of a session a second time.
func (r *randomRun) again(t *rapid.T) {
	if len(r.sent) == 0 {
		t.Skip("nothing was sent")
	}
	r.entry(r.sent[rapid.IntRange(max(0, len(r.sent)-8), len(r.sent)-1).Draw(t, "group")])
}

// restore continues with a new state, from the snapshot of the old one.
func (r *randomRun) restore(t *rapid.T) {
	snapshot := r.restored.Snapshot()
	var b bytes.Buffer
	if _, err := snapshot.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	next := New(Config{})
	if err := next.Restore(bytes.NewReader(b.Bytes())); err != nil {
		t.Fatal(err)
	}
	again := next.Snapshot()
	var c bytes.Buffer
	if _, err := again.WriteTo(&c); err != nil || !bytes.Equal(b.Bytes(), c.Bytes()) {
		t.Fatalf("the snapshot of a restored state differs (%v)", err)
	}
	if before, after := derived(r.restored.contents), derived(next.contents); before != after {
		t.Fatalf("derived state: before %s, after %s", before, after)
	}
	r.restored = next
}

// derived shows the data that are not in a snapshot but follow from it.
func derived(c *contents) string {
	return fmt.Sprint(c.databases.nameBytes, c.databases.used, c.claims.numbered.Items(), len(c.requests.positions), c.requests.size)
}

// skip passes an index over, as for an entry of Raft's own, or very many.
func (r *randomRun) skip(t *rapid.T) {
	r.index += rapid.SampledFrom([]uint64{1, 1, 1, requestShelter / 2}).Draw(t, "indexes")
	r.straight.Skip(r.index)
	r.restored.Skip(r.index)
}

// entry applies one entry everywhere and compares the results.
func (r *randomRun) entry(groups ...modelGroup) {
	r.index++
	r.model.index, r.model.now = r.index, r.now
	encoded := make([][]byte, len(groups))
	for i, g := range groups {
		encoded[i] = raftlog.AppendGroup(nil, g.encoded())
	}
	data := raftlog.AppendEntry(nil, raftlog.Header{Format: 1, ClusterID: testCluster, TimeUnixNano: r.now}, encoded)
	first := r.applyTo(r.straight, data)
	if d := cmp.Diff(first, r.applyTo(r.restored, data), cmpopts.EquateEmpty()); d != "" {
		r.t.Fatalf("the restored state answers otherwise: %s", d)
	}
	for i, g := range groups {
		status, want := r.model.applyGroup(g)
		r.compare(g, status, want, first[i])
	}
}

func (g modelGroup) encoded() raftlog.Group {
	e := raftlog.Group{Origin: g.origin, Session: g.session, Sequence: g.sequence, Acknowledged: g.acknowledged}
	for _, op := range g.operations {
		e.Operations = append(e.Operations, encodeOperation(op))
	}
	return e
}

func (r *randomRun) applyTo(s *State, data []byte) []raftlog.GroupResult {
	results, err := s.Apply(r.index, bytes.Clone(data))
	if err != nil {
		r.t.Fatal(err)
	}
	return results
}

// compare compares a group's results with the model's, but for the words of
// refusals.
func (r *randomRun) compare(g modelGroup, status raftlog.Status, want []*raftlogv1.Result, got raftlog.GroupResult) {
	if got.Status != status || len(got.Results) != len(want) {
		r.t.Fatalf("group %+v: want %v with %d results, got %v with %d", g, status, len(want), got.Status, len(got.Results))
	}
	for i := range want {
		result, err := decodeResult(got.Results[i])
		if err != nil {
			r.t.Fatal(err)
		}
		r.last = result
		if result.GetRefusal() != nil {
			result.Refusal.Detail, result.Refusal.Field = "", ""
		}
		if d := cmp.Diff(want[i], result, protocmp.Transform()); d != "" {
			r.t.Fatalf("%v\nmodel %v\n-want +got:\n%s", g.operations[i], r.model, d)
		}
	}
}

// check compares hashes, and the results of reads with the model.
func (r *randomRun) check(t *rapid.T) {
	index, hash := r.straight.Hash()
	if i, h := r.restored.Hash(); i != index || h != hash {
		t.Fatalf("hashes %d:%016x and %d:%016x", index, hash, i, h)
	}
	if want := hashFromScratch(r.straight.contents); want != hash {
		t.Fatalf("hash %016x, from scratch %016x", hash, want)
	}
	for _, db := range randomDatabases {
		r.checkDatabase(t, db)
	}
	counts := r.restored.Counts()
	if int(counts.Requests) != len(r.model.requests) {
		t.Fatalf("%d request ids, model %v", counts.Requests, r.model)
	}
}

func (r *randomRun) checkDatabase(t *rapid.T, db string) {
	var ids []NamedIdentity
	for _, k := range mapKeys(r.model.ids) {
		if name, ok := strings.CutPrefix(k, place(db, "")); ok && !r.model.ids[k].hidden {
			ids = append(ids, NamedIdentity{name, identity.Counter{Last: r.model.ids[k].last}})
		}
	}
	var hilos []NamedHiLo
	var holders []*raftlogv1.RangeHolder
	for _, k := range mapKeys(r.model.hilos) {
		if tag, ok := strings.CutPrefix(k, place(db, "")); ok {
			hilos = append(hilos, NamedHiLo{tag, r.model.hilos[k].counter()})
			for _, o := range r.model.hilos[k].outstanding {
				holders = append(holders, o.holder)
			}
		}
	}
	var claims []string
	for _, k := range mapKeys(r.model.claims) {
		if id, ok := strings.CutPrefix(k, place(db, "")); ok {
			claims = append(claims, id)
		}
	}
	for _, s := range []*State{r.straight, r.restored} {
		if d := cmp.Diff(ids, s.Identities(db, "", "", 100)); d != "" {
			t.Fatalf("identities: %s", d)
		}
		if d := cmp.Diff(hilos, s.HiLos(db, "", "", 100), cmpopts.IgnoreTypes(hilo.Holder{})); d != "" {
			t.Fatalf("HiLo counters: %s", d)
		}
		if d := cmp.Diff(holders, holdersOf(s.HiLos(db, "", "", 100)), protocmp.Transform()); d != "" {
			t.Fatalf("holders: %s", d)
		}
		if d := cmp.Diff(claims, s.Claims(db, "", "", 100)); d != "" {
			t.Fatalf("claims: %s", d)
		}
	}
}

// holdersOf returns who has the ranges of counters, nil for each that is not known.
func holdersOf(counters []NamedHiLo) (holders []*raftlogv1.RangeHolder) {
	for _, c := range counters {
		for _, o := range c.Outstanding {
			holders = append(holders, HolderOf(o))
		}
	}
	return holders
}

func (h *modelHiLo) counter() hilo.Counter {
	c := hilo.Counter{Max: h.max, Peak: h.peak}
	for _, o := range h.outstanding {
		c.Outstanding = append(c.Outstanding, hilo.Outstanding{Range: hilo.Range{Low: o.low, High: o.high}, Token: o.token})
	}
	return c
}
