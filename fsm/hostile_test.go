package fsm

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// TestHostileFields sets each field of each operation to every hostile value. No state may result
// that cannot be restored from its snapshot, or that behaves otherwise after it.
func TestHostileFields(t *testing.T) {
	formed, templates := hostileTemplates(t)
	unformed := snapshotOf(t, New(Config{}))
	seen := map[protoreflect.FullName]bool{}
	for _, o := range templates {
		base := formed
		if o.GetBootstrap() != nil {
			base = unformed
		}
		w := newTwins(t, base)
		for i := range variants(o.ProtoReflect()) {
			w.operation = proto.CloneOf(o)
			variants(w.operation.ProtoReflect())[i]()
			if w.apply(encodeHostile(w.operation)); w.changed {
				w.restart()
				w.goOn()
				w.restart()
				w = newTwins(t, base)
			}
		}
		err := protorange.Range(o.ProtoReflect(), func(p protopath.Values) error {
			if m, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok {
				seen[m.Descriptor().FullName()] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range messagesIn((*raftlogv1.Operation)(nil).ProtoReflect().Descriptor(), map[protoreflect.FullName]bool{}) {
		if !seen[name] {
			t.Errorf("no operation has a %s", name)
		}
	}
}

// FuzzHostileOperations is TestHostileFields for several fields at once, of operations that
// follow each other.
func FuzzHostileOperations(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	base, templates := hostileTemplates(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 10))
		w := newTwins(t, base)
		for range 20 {
			w.now = w.now.Add(time.Duration(random.IntN(60)-6) * time.Second)
			w.operation = proto.CloneOf(templates[random.IntN(len(templates))])
			for range random.IntN(6) {
				all := variants(w.operation.ProtoReflect())
				all[random.IntN(len(all))]()
			}
			w.apply(encodeHostile(w.operation))
			if random.IntN(5) == 0 {
				w.goOn()
				w.restart()
			}
		}
	})
}

// messagesIn adds the messages that a message may have in it, and itself.
func messagesIn(d protoreflect.MessageDescriptor, all map[protoreflect.FullName]bool) map[protoreflect.FullName]bool {
	if all[d.FullName()] {
		return all
	}
	all[d.FullName()] = true
	for i := range d.Fields().Len() {
		if in := d.Fields().Get(i).Message(); in != nil {
			messagesIn(in, all)
		}
	}
	return all
}

// variants are the ways to spoil a message: each sets one field in it to another value.
func variants(m protoreflect.Message) (all []func()) {
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && !m.Has(fd) {
			continue // The operation stays of its kind.
		}
		if fd.IsList() || fd.Message() != nil {
			all = append(all, func() { m.Clear(fd) })
		}
		switch {
		case fd.IsList():
			all = append(all, listVariants(m.Mutable(fd).List(), fd)...)
		case fd.Message() != nil && m.Has(fd):
			all = append(all, variants(m.Mutable(fd).Message())...)
		case fd.Message() != nil:
			all = append(all, func() { m.Mutable(fd) })
		default:
			for _, v := range hostileValues(fd) {
				all = append(all, func() { m.Set(fd, v) })
			}
		}
	}
	return all
}

func listVariants(l protoreflect.List, fd protoreflect.FieldDescriptor) (all []func()) {
	all = append(all, func() { l.Append(l.NewElement()) })
	if fd.Message() == nil {
		for _, v := range hostileValues(fd) {
			all = append(all, func() { l.Append(v) })
		}
	}
	if l.Len() == 0 {
		return all
	}
	all = append(all, func() { l.Append(l.Get(0)) })
	if fd.Message() != nil {
		return append(all, variants(l.Get(0).Message())...)
	}
	for _, v := range hostileValues(fd) {
		all = append(all, func() { l.Set(0, v) })
	}
	return all
}

// notUTF8 is replaced by invalid UTF-8 in the encoded message.
const notUTF8 = "utf8?"

func encodeHostile(o *raftlogv1.Operation) []byte {
	return bytes.ReplaceAll(encodeOperation(o), []byte(notUTF8), []byte("utf8\xff"))
}

var (
	hostileTexts = []string{
		"", "t", "S", "A", "k1", "users/2", "users/9223372036854775807", "x\x00", "\u202e", "ß", "2026", "9999", notUTF8, "expired",
		"Europe/Berlin", "{branch}{year}-{number:18}", strings.Repeat("r", 65), strings.Repeat("m", 2026),
	}
	hostileNumbers = []int64{
		0, 1, 2, 5, 257, 1<<20 + 1, 1 << 40, 1<<53 - 1, 1 << 53, math.MaxInt64, -1, math.MinInt64,
		int64(format.FirstDate), int64(format.LastDate), int64(format.LastDate) + 1, testTime.UnixNano(),
	}
	hostileBytes = [][]byte{nil, make([]byte, 16), make([]byte, 32), nodeNamed("node A"), nodeNamed("node D")}
)

func hostileValues(fd protoreflect.FieldDescriptor) (all []protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(false), protoreflect.ValueOfBool(true)}
	case protoreflect.StringKind:
		for _, s := range hostileTexts {
			all = append(all, protoreflect.ValueOfString(s))
		}
	case protoreflect.BytesKind:
		for _, b := range hostileBytes {
			all = append(all, protoreflect.ValueOfBytes(b))
		}
	default:
		for _, n := range hostileNumbers {
			all = append(all, hostileNumber(fd.Kind(), n))
		}
	}
	return all
}

func hostileNumber(kind protoreflect.Kind, n int64) protoreflect.Value {
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	default:
		return protoreflect.ValueOfInt64(n)
	}
}

// dated is a definition in which dates count.
var dated = series.Definition{
	Format: "{year}-{number:2}", Reset: format.ResetYear, Order: series.OrderDates, ExpiresIn: time.Hour,
	MaxOpen: 9, MaxKeys: 99,
}

// hostileBase returns a log with a state that has something of everything, and the operations
// that put the series d of a newer one into it as t.
func hostileBase(t testing.TB) (l *testLog, imports [][]byte) {
	t.Helper()
	l = newFormedLog(t)
	token := joinTokenFor(1, time.Hour)
	add := &raftlogv1.MemberAdd{Member: testMember("D"), TokenHash: token.GetJoinTokenCreate().GetTokenHash()}
	take := func(keys ...string) []byte {
		return onSeries(&raftlogv1.SeriesTake{Name: "d", Keys: keys, Date: proto.Int32(int32(format.DateOf(2026, 1, 1)))})
	}
	for _, o := range append([][]byte{
		encodeOperation(token), addOperation(add), encodeOperation(opNext("users", 3)), encodeOperation(opClaimID("users/7")),
		encodeOperation(opRaiseEtags("A", map[string]uint64{"x": 5})), encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: "orders", Token: 7})),
		onSeries(&raftlogv1.SeriesDefine{Name: "d", Definition: series.DefinitionMessage(dated)}), take("a", "b"),
		onSeries(&raftlogv1.PoolDefine{Name: "p", Layout: op.PoolLayout(snowflake.Layouts["twitter"])}),
		onSeries(&raftlogv1.WorkerAcquire{Pool: "p", Holder: "a", Token: 5, HolderUnixNano: testTime.UnixNano()}),
	}, seriesOperations()[:3]...) {
		l.mustApplied(l.raw(o))
	}
	newer := &testLog{t: t, state: restored(t, snapshotOf(t, l.state)), index: l.index, now: l.now}
	for _, o := range asT(importOf(t, l.state)) {
		l.mustApplied(l.raw(o))
	}
	newer.mustApplied(newer.raw(take("c")))
	return l, asT(importOf(t, newer.state))
}

// asT returns those of the imports that are of series d, with the name t.
func asT(imports [][]byte) (all [][]byte) {
	for _, o := range imports {
		if bytes.Contains(o, []byte("\x12\x01d")) {
			all = append(all, bytes.Replace(o, []byte("\x12\x01d"), []byte("\x12\x01t"), 1))
		}
	}
	return all
}

// hostileTemplates returns the snapshot of a state, and operations of each kind with each
// message that may be in them. The state takes nearly all of them.
func hostileTemplates(t testing.TB) (base []byte, all []*raftlogv1.Operation) {
	t.Helper()
	l, encoded := hostileBase(t)
	given := &raftlogv1.GivenTag{Id: nodeNamed("elsewhere"), Tag: "Z", Etags: []*raftlogv1.EtagCeiling{{Database: "x", Floor: 3}}}
	all = []*raftlogv1.Operation{
		keyed(opNext("users", 2), key(1, 1)), opSeed("users", 9, true, proto.Int64(3)), opDelete("users", false),
		opHiLo(&raftlogv1.HiLoNext{Tag: "orders", LastSize: 32, HasLastRange: true, Token: 8}),
		opReturn(&raftlogv1.HiLoReturn{Tag: "orders", Low: 1, High: 32, Last: 3, Token: 7, CheckToken: true}),
		opHiLoSetTo("orders", 50, 32), opClaimID("users/5"), opReleaseID("users/7"), opSet("max-claims", 4), opBootstrapABC(),
		opMergeOf(&raftlogv1.Merge{
			Identities: []*raftlogv1.MergeIdentity{{Name: "a", Last: 5}}, Hilos: []*raftlogv1.MergeHiLo{{Tag: "a", Max: 5, Peak: 9}},
			Claims: []string{"a/5"},
		}),
		opMergeClusterOf(&raftlogv1.MergeCluster{Floor: 5, Tags: []*raftlogv1.GivenTag{given}, ShareTags: true, EtagFloor: 2}),
		opRaiseEtags("B", map[string]uint64{"x": 5}), opCleanStop("A", 0, map[string]uint64{"x": 5}), joinTokenFor(2, time.Hour),
		opRoles(t, map[string]string{"ops": rights.Any}),
	}
	y2026, number := []string{"2026"}, []*raftlogv1.SeriesKey{{Key: "b", Number: 2}}
	books := &raftlogv1.SeriesInBooks{Scope: y2026, Last: 4, LastDate: proto.Int32(int32(format.DateOf(2026, 1, 2)))}
	for _, data := range append(
		encoded, addOperation(&raftlogv1.MemberAdd{Member: testMember("E")}), announceOperation(testMember("D")),
		promoteOperation(nodeNamed("node D")),
		removeOperation("C", 0), encodePayload(&raftlogv1.WatcherSet{Tag: "C", Watcher: true}), formatRaiseOperation(1),
		onSeries(&raftlogv1.SeriesDefine{
			Name: "d", Definition: series.DefinitionMessage(dated), ExpectedVersion: 1,
			Begins: []*raftlogv1.SeriesBegin{{Scope: []string{"2027"}, First: 7}},
		}),
		onSeries(&raftlogv1.SeriesDefine{Name: "v", Definition: &raftlogv1.SeriesDefinition{
			Format: "{branch}-{number}", MaxLength: 20, MaxAheadDays: proto.Int32(0),
			Allowed: []*raftlogv1.SeriesAllowed{{Name: "branch", Values: []string{"BERLIN"}}},
		}}),
		onSeries(&raftlogv1.SeriesTake{Name: "d", Keys: []string{"a", "c"}, Label: "x"}),
		onSeries(&raftlogv1.SeriesEnd{Name: "d", State: 2, Keys: number}),
		onSeries(&raftlogv1.SeriesAllot{Name: "d", Scope: y2026, Allotment: &raftlogv1.SeriesAllotment{From: 50, To: 60, Note: "n"}}),
		onSeries(&raftlogv1.SeriesCloseScope{Name: "d", Scope: y2026}),
		onSeries(&raftlogv1.SeriesResume{Name: "t", Books: []*raftlogv1.SeriesInBooks{books}}),
		onSeries(&raftlogv1.SeriesReconcile{Name: "t", Scope: y2026, Numbers: number}),
		onSeries(&raftlogv1.SeriesDelete{Name: "d", ExpectedVersion: 1}),
		encodeIn(op.Envelope{Database: "db"}, &raftlogv1.DatabaseDelete{}),
		onSeries(&raftlogv1.PoolDefine{
			Name: "q", Layout: op.PoolLayout(snowflake.Layouts["sonyflake-bits"]), WindowNanos: int64(time.Minute), Forget: true,
		}),
		onSeries(&raftlogv1.WorkerAcquire{Pool: "p", Holder: "b", Token: 6, WantNanos: int64(time.Minute), HolderUnixNano: l.now.UnixNano()}),
		onSeries(&raftlogv1.WorkerRenew{Pool: "p", Token: 5, WantNanos: int64(time.Minute), HolderUnixNano: l.now.UnixNano()}),
		onSeries(&raftlogv1.WorkerRelease{Pool: "p", Token: 5, Next: 1 << 38}),
		onSeries(&raftlogv1.WorkerEvict{Pool: "p", Holder: "a"}),
	) {
		o := &raftlogv1.Operation{}
		if err := proto.Unmarshal(data, o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return snapshotOf(t, l.state), all
}

// twins are a state, and one that is restored from its newest snapshot, once there is one.
type twins struct {
	*testLog
	restarted *State
	// changed means that the last operation changed the state.
	changed bool
	// operation is the last hostile one.
	operation *raftlogv1.Operation
}

func newTwins(t testing.TB, base []byte) *twins {
	w := &twins{testLog: &testLog{t: t, state: restored(t, base), now: testTime.Add(time.Minute)}}
	w.index = w.state.AppliedIndex()
	return w
}

func (w *twins) fail(what string, args ...any) {
	w.t.Helper()
	w.t.Logf("after %.2000v", w.operation)
	w.t.Fatalf(what, args...)
}

// apply applies an operation to both, which must agree.
func (w *twins) apply(data []byte) {
	w.t.Helper()
	_, before := w.state.Hash()
	answer := w.raw(data)
	_, hash := w.state.Hash()
	if w.changed = hash != before; w.restarted == nil {
		return
	}
	e := w.entries[len(w.entries)-1]
	other, err := w.restarted.Apply(e.index, e.data)
	if err != nil {
		w.fail("the restarted state: %v", err)
	}
	if got := w.result(other[0], 0); !proto.Equal(answer, got) {
		w.fail("%.500v was answered with\n%v, and after a restart with\n%v", data, answer, got)
	}
	if _, other := w.restarted.Hash(); hash != other {
		w.fail("hash %x, and after a restart %x", hash, other)
	}
}

// restart restores one of the twins from the other's snapshot.
func (w *twins) restart() {
	w.t.Helper()
	snapshot, next := snapshotOf(w.t, w.state), New(Config{})
	if err := next.Restore(bytes.NewReader(snapshot)); err != nil {
		w.fail("the snapshot cannot be restored: %v", err)
	}
	if got, want := derived(next.contents), derived(w.state.contents); got != want {
		w.fail("from the restored state follows %s, not %s", got, want)
	}
	next.contents.series.all(func(i *seriesItem) bool {
		if err := verified(i.is); err != nil {
			w.fail("series %q: %v", i.name, err)
		}
		return true
	})
	w.restarted = next
}

// goOn does with both what callers do next, with each series above all.
func (w *twins) goOn() {
	w.t.Helper()
	var next []*seriesItem
	w.state.contents.series.all(func(i *seriesItem) bool { next = append(next, i); return true })
	for _, i := range next {
		d, version := i.is.Definition()
		d.MaxOpen = 77
		var values []string
		if strings.Contains(d.Format, "{branch}") {
			values = []string{"A"}
		}
		for _, m := range []proto.Message{
			&raftlogv1.SeriesDefine{Name: i.name, Definition: series.DefinitionMessage(d), ExpectedVersion: version},
			&raftlogv1.SeriesResume{Name: i.name},
			&raftlogv1.SeriesTake{Name: i.name, Values: values, Keys: []string{"b", "next"}, Version: version + 1, SinceUnixNano: i.is.Since()},
			&raftlogv1.SeriesEnd{Name: i.name, State: uint32(series.Released), Keys: []*raftlogv1.SeriesKey{{Key: "next"}}},
		} {
			w.apply(onSeries(m))
		}
	}
	for _, m := range []proto.Message{
		&raftlogv1.WorkerAcquire{Pool: "p", Holder: "a", Token: 9, HolderUnixNano: w.now.UnixNano()},
		&raftlogv1.WorkerAcquire{Pool: "q", Holder: "c", Token: 9, HolderUnixNano: w.now.UnixNano()},
		&raftlogv1.WorkerRenew{Pool: "p", Token: 5, HolderUnixNano: w.now.UnixNano()},
		&raftlogv1.WorkerRelease{Pool: "p", Token: 5, Next: 9},
	} {
		w.apply(onSeries(m))
	}
	w.apply(encodeOperation(opNext("users", 1)))
	w.apply(encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: "orders"})))
	w.apply(announceOperation(testMember("A")))
}
