package fsm

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
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

// restore goes on with a new state, from the snapshot of the old one.
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

// derived shows what is not in a snapshot but follows from it.
func derived(c *contents) string {
	return fmt.Sprint(c.nameBytes, c.numbered.Items(), len(c.requests.positions))
}

// skip passes an index over, as for an entry of Raft's own.
func (r *randomRun) skip(*rapid.T) {
	r.index++
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
		result, err := DecodeResult(got.Results[i])
		if err != nil {
			r.t.Fatal(err)
		}
		if result.GetRefusal() != nil {
			result.Refusal.Detail, result.Refusal.Field = "", ""
		}
		if d := cmp.Diff(want[i], result, protocmp.Transform()); d != "" {
			r.t.Fatalf("%v\nmodel %v\n-want +got:\n%s", g.operations[i], r.model, d)
		}
	}
}

// check compares hashes, and what reads say with the model.
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
	if int(counts.Requests) != len(r.model.requests) || counts.RequestFloor != r.model.floor {
		t.Fatalf("window: %+v, model %v", counts, r.model)
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
	for _, k := range mapKeys(r.model.hilos) {
		if tag, ok := strings.CutPrefix(k, place(db, "")); ok {
			hilos = append(hilos, NamedHiLo{tag, r.model.hilos[k].counter()})
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
		if d := cmp.Diff(hilos, s.HiLos(db, "", "", 100)); d != "" {
			t.Fatalf("HiLo counters: %s", d)
		}
		if d := cmp.Diff(claims, s.Claims(db, "", "", 100)); d != "" {
			t.Fatalf("claims: %s", d)
		}
	}
}

func (h *modelHiLo) counter() hilo.Counter {
	c := hilo.Counter{Max: h.max, Peak: h.peak}
	for _, o := range h.outstanding {
		c.Outstanding = append(c.Outstanding, hilo.Outstanding{Range: hilo.Range{Low: o.low, High: o.high}, Token: o.token})
	}
	return c
}

var randomDatabases = []string{"x", "y", "z"}

// draw draws operations from a world so small that they meet.
func (r *randomRun) draw(t *rapid.T) []*raftlogv1.Operation {
	ops := make([]*raftlogv1.Operation, rapid.IntRange(0, 4).Draw(t, "operations"))
	for i := range ops {
		ops[i] = r.drawOperation(t)
		if rapid.IntRange(0, 3).Draw(t, "keyed") == 0 {
			ops[i].Request = r.drawKey(t)
		}
	}
	return ops
}

func (r *randomRun) drawKey(t *rapid.T) *raftlogv1.RequestKey {
	k := key(rapid.IntRange(1, 12).Draw(t, "key"), uint64(rapid.IntRange(1, 6).Draw(t, "fingerprint")/6))
	if rapid.IntRange(0, 3).Draw(t, "retry") == 0 {
		k.Retry = true
		k.Since = rapid.Uint64Range(0, r.index).Draw(t, "since")
	}
	return k
}

func (r *randomRun) drawOperation(t *rapid.T) *raftlogv1.Operation {
	kinds := []func(*rapid.T) *raftlogv1.Operation{
		drawNext, drawNext, drawNext, drawSeed, drawDelete, r.drawHiLo, r.drawHiLo, r.drawReturn, r.drawReturn,
		r.drawHiLoSet, drawClaim, drawClaim, drawRelease, drawSetting, drawMembership, drawMembership, r.drawEtags,
	}
	op := rapid.SampledFrom(kinds).Draw(t, "kind")(t)
	if op.Database == "db" {
		op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db")
	}
	return op
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "long name", "ünï"}).Draw(t, "name")
}

func drawNext(t *rapid.T) *raftlogv1.Operation {
	op := opNext(drawName(t), rapid.Int64Range(0, 5).Draw(t, "count"))
	op.GetIdentityNext().Separator = rapid.SampledFrom([]string{"/", "/", "#"}).Draw(t, "separator")
	return op
}

func drawSeed(t *rapid.T) *raftlogv1.Operation {
	value := rapid.SampledFrom([]int64{-3, 0, 1, 5, 20, math.MaxInt64 - 2, math.MaxInt64}).Draw(t, "value")
	// Far values only once in a while, or there is nothing else any more.
	if value > 20 && rapid.IntRange(0, 3).Draw(t, "far") > 0 {
		value = 7
	}
	op := opSeed(drawName(t), value, rapid.Bool().Draw(t, "force"), nil)
	if rapid.IntRange(0, 3).Draw(t, "expected") == 0 {
		op.GetIdentitySeed().Expected = proto.Int64(rapid.Int64Range(0, 5).Draw(t, "value expected"))
	}
	return op
}

func drawDelete(t *rapid.T) *raftlogv1.Operation {
	return opDelete(drawName(t), rapid.IntRange(0, 3).Draw(t, "forget") == 0)
}

func (r *randomRun) drawHiLo(t *rapid.T) *raftlogv1.Operation {
	return opHiLo(&raftlogv1.HiLoNext{
		Tag:               drawName(t),
		Size:              rapid.SampledFrom([]int64{0, 0, 1, 3, 1 << 20, 1<<20 + 1, -1}).Draw(t, "size"),
		LastSize:          rapid.SampledFrom([]int64{0, 32, 64, 1 << 20, -5}).Draw(t, "last size"),
		HasLastRange:      rapid.Bool().Draw(t, "has last"),
		LastRangeUnixNano: r.now - rapid.Int64Range(-5, 90).Draw(t, "idle")*1e9,
		LastMax:           rapid.SampledFrom([]int64{0, 0, 0, 40, -7, 1 << 40}).Draw(t, "last max"),
		Token:             rapid.Uint64Range(0, 3).Draw(t, "token"),
		ServerTag:         "A", ServerPrefix: rapid.SampledFrom([]string{"", "North"}).Draw(t, "prefix"),
	})
}

// drawReturn mostly returns a range that is or was outstanding.
func (r *randomRun) drawReturn(t *rapid.T) *raftlogv1.Operation {
	ret := &raftlogv1.HiLoReturn{Tag: drawName(t), Low: 1, High: 32, Last: 5, CheckToken: rapid.Bool().Draw(t, "check token")}
	op := opReturn(ret)
	op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db of range")
	if h := r.model.hilos[place(op.GetDatabase(), ret.GetTag())]; h != nil && len(h.outstanding) > 0 {
		o := h.outstanding[rapid.IntRange(0, len(h.outstanding)-1).Draw(t, "which")]
		ret.Low, ret.High, ret.Token = o.low, o.high, o.token
		ret.Last = rapid.SampledFrom([]int64{o.low - 2, o.low - 1, o.low - 1, o.low, o.high, o.high + 1}).Draw(t, "last")
	}
	if rapid.IntRange(0, 4).Draw(t, "without low") == 0 {
		ret.Low = 0
	}
	return op
}

func (r *randomRun) drawHiLoSet(t *rapid.T) *raftlogv1.Operation {
	op := opHiLoSetTo(drawName(t), 0, rapid.Int64Range(0, 40).Draw(t, "expected"))
	op.Database = rapid.SampledFrom(randomDatabases).Draw(t, "db of counter")
	set := op.GetHiloSet()
	if h := r.model.hilos[place(op.GetDatabase(), set.GetTag())]; h != nil && rapid.Bool().Draw(t, "as expected") {
		set.Expected = h.max
	}
	set.Max = set.GetExpected() + rapid.Int64Range(-1, 40).Draw(t, "ahead")
	set.Max = max(set.Max, 0)
	return op
}

var randomClaims = []string{"a/1", "a/2", "a/3", "a/6", "a/7", "a#3", "b/4", "b/9223372036854775807", "ünï/5", "a/01", "free"}

func drawClaim(t *rapid.T) *raftlogv1.Operation {
	return opClaimID(rapid.SampledFrom(randomClaims).Draw(t, "id"))
}

func drawRelease(t *rapid.T) *raftlogv1.Operation {
	return opReleaseID(rapid.SampledFrom(randomClaims).Draw(t, "id"))
}

// drawSetting lowers a limit until it bites, or raises it again.
func drawSetting(t *rapid.T) *raftlogv1.Operation {
	name := rapid.SampledFrom([]string{"request-window", "max-identities", "max-hilos", "max-claims", "max-databases", "max-name-bytes-total"}).Draw(t, "setting")
	values := map[string][]int64{"request-window": {1, 2, 5, 1_000_000}, "max-name-bytes-total": {8, 1 << 30}, "max-databases": {1, 2, 10_000}}[name]
	if values == nil {
		values = []int64{1, 3, 5_000_000}
	}
	return opSet(name, rapid.SampledFrom(values).Draw(t, "value"))
}

func drawMembership(t *rapid.T) *raftlogv1.Operation {
	tag := rapid.SampledFrom([]string{"A", "B", "C", "D", "E"}).Draw(t, "tag")
	m := testMember(tag)
	switch rapid.IntRange(0, 9).Draw(t, "membership") {
	case 0, 1:
		m.Watcher = rapid.Bool().Draw(t, "watcher")
		m.Tag = rapid.SampledFrom([]string{tag, tag, "A", ""}).Draw(t, "wanted")
		if rapid.IntRange(0, 3).Draw(t, "fresh") == 0 {
			m.Id = nodeNamed("fresh " + tag)
		}
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberJoin{MemberJoin: &raftlogv1.MemberJoin{Member: m}}}
	case 2:
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberPromote{MemberPromote: &raftlogv1.MemberPromote{Id: m.GetId()}}}
	case 3:
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberRemove{MemberRemove: &raftlogv1.MemberRemove{Tag: tag}}}
	case 4:
		return opBootstrapABC()
	default:
		m.Tag = rapid.SampledFrom([]string{tag, tag, tag, tag, "B"}).Draw(t, "announced")
		m.GrpcAddress = rapid.SampledFrom([]string{"here:1", "there:2"}).Draw(t, "address")
		return &raftlogv1.Operation{Op: &raftlogv1.Operation_MemberAnnounce{MemberAnnounce: &raftlogv1.MemberAnnounce{Member: m}}}
	}
}

func (r *randomRun) drawEtags(t *rapid.T) *raftlogv1.Operation {
	tag := rapid.SampledFrom([]string{"A", "B", "E"}).Draw(t, "tag")
	to := rapid.MapOfN(rapid.SampledFrom(randomDatabases), rapid.Uint64Range(0, 50), 0, 3).Draw(t, "etags")
	if rapid.Bool().Draw(t, "raise") {
		return opRaiseEtags(tag, to)
	}
	start := rapid.Uint64Range(0, 3).Draw(t, "start")
	if e := r.model.etags[string(nodeNamed("node "+tag))]; e != nil && rapid.Bool().Draw(t, "present start") {
		start = e.start
	}
	return opCleanStop(tag, start, to)
}

// hashFromScratch computes the hash of everything that is stored.
func hashFromScratch(c *contents) uint64 {
	var h stateHash
	for i, name := range c.databases.names {
		h.add(hashDatabase(uint32(i), name))
	}
	for _, item := range c.identities.Items() {
		h.add(hashIdentity(item, false))
	}
	for _, item := range c.hidden.Items() {
		h.add(hashIdentity(item, true))
	}
	for _, item := range c.hilos.Items() {
		h.add(hashHiLo(item))
	}
	for _, item := range c.claims.Items() {
		h.add(hashClaim(item))
	}
	for _, m := range c.members {
		h.add(hashMember(m))
	}
	for origin, s := range c.sessions {
		h.add(hashSession(origin, s))
		for _, r := range s.results {
			h.add(hashSessionResult(origin, s.number, r.sequence, r.results))
		}
	}
	for node, e := range c.etags {
		h.add(hashEtags(node, e))
	}
	for position := c.requests.first; position < c.requests.next; position++ {
		h.add(c.requestHash(position))
	}
	h.add(hashRequestFloor(c.requests.floor))
	for id := range settingCount {
		if c.settings.changed(id) {
			h.add(hashSetting(id, c.settings.value(id)))
		}
	}
	if c.formed() {
		h.add(hashCluster(c.clusterID))
	}
	h.add(hashFormat(c.format))
	return uint64(h)
}
