package fsm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// onSeries encodes an operation on a series of the database db. A take that names no
// definition is by the first one of a series that began when tests do.
func onSeries(payload proto.Message) []byte {
	if take, ok := payload.(*raftlogv1.SeriesTake); ok && take.GetVersion() == 0 {
		take.Version, take.SinceUnixNano = 1, testTime.UnixNano()
	}
	b, err := op.Envelope{Database: "db"}.Encode(payload)
	if err != nil {
		panic(err)
	}
	return b
}

// reusing is a definition with which numbers change hands.
var reusing = series.Definition{
	Format: "{branch}-{number:3}", OnRelease: series.ReleaseReuses, OnExpiry: series.ExpiryReuses,
	ExpiresIn: 90 * time.Second,
}

// seriesOperations are one of each kind; the first two are applied.
func seriesOperations() [][]byte {
	return [][]byte{
		onSeries(&raftlogv1.SeriesDefine{Name: "s", Definition: series.DefinitionMessage(reusing)}),
		onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"A"}, Keys: []string{"a", "b"}, Label: "x"}),
		onSeries(&raftlogv1.SeriesEnd{Name: "s", State: uint32(series.Confirmed), Keys: []*raftlogv1.SeriesKey{{Key: "a", Number: 1}}}),
		onSeries(&raftlogv1.SeriesCloseScope{Name: "s", Scope: []string{"A"}}),
		onSeries(&raftlogv1.SeriesResume{Name: "s", Books: []*raftlogv1.SeriesInBooks{{Scope: []string{"B"}, Last: 3}}}),
		onSeries(&raftlogv1.SeriesReconcile{Name: "s", Scope: []string{"A"}, Numbers: []*raftlogv1.SeriesKey{{Number: 2}}}),
		onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name: "t", Definition: series.DefinitionMessage(reusing), Version: 1,
		}}}),
		onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "s", Scope: []string{"B"}, First: 1, Numbers: []*raftlogv1.SeriesStored{{Key: "c", State: 1}},
		}}}),
		onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "s", Scope: []string{"D"}, First: 7, Begin: 7,
		}}}),
		onSeries(&raftlogv1.SeriesDefine{
			Name: "u", Definition: series.DefinitionMessage(reusing), Begins: []*raftlogv1.SeriesBegin{{Scope: []string{"A"}, First: 7}},
		}),
		onSeries(&raftlogv1.SeriesDelete{Name: "s", ExpectedVersion: 1}),
	}
}

// seriesRun feeds operations to a state, and calls to a series beside it.
type seriesRun struct {
	*rand.Rand
	*testLog
	beside *series.Series
}

func newSeriesRun(t *testing.T, seed uint64) *seriesRun {
	t.Helper()
	beside, err := series.New(reusing)
	if err != nil {
		t.Fatal(err)
	}
	beside.BeginAt(testTime.UnixNano())
	r := &seriesRun{Rand: rand.New(rand.NewPCG(seed, 1)), testLog: newFormedLog(t), beside: beside}
	r.mustApplied(r.raw(seriesOperations()[0]))
	return r
}

// TestSeriesInTheLogAreThoseOfTheirPackage: whatever is asked of a series through the log,
// also after restarts, it does what one does that is called directly.
func TestSeriesInTheLogAreThoseOfTheirPackage(t *testing.T) {
	for seed := range uint64(60) {
		r := newSeriesRun(t, seed)
		for range 40 {
			r.step()
			if got := r.series().Hash(); got != r.beside.Hash() {
				t.Fatalf("seed %d: the series has the hash %x, that beside it %x", seed, got, r.beside.Hash())
			}
			if got, want := r.state.contents.hash(), hashFromScratch(r.state.contents); got != want {
				t.Fatalf("seed %d: the state has the hash %x, from scratch %x", seed, got, want)
			}
		}
	}
}

func (r *seriesRun) series() (found *series.Series) {
	r.state.ReadSeries("db", "s", func(_ NamedSeries, s *series.Series) { found = s })
	return found
}

func (r *seriesRun) step() {
	r.now = r.now.Add(time.Duration(r.IntN(60)-6) * time.Second)
	now := r.now.UnixNano()
	var keys []string
	for _, i := range r.Perm(8)[:1+r.IntN(3)] {
		keys = append(keys, fmt.Sprint("k", i))
	}
	switch r.IntN(12) {
	case 10:
		r.define(now)
	case 11:
		r.delete(now)
	case 0:
		r.allot(now)
		r.state = restored(r.t, snapshotOf(r.t, r.state))
	case 1:
		last, err := r.beside.CloseScope(now, []string{"C"})
		r.same(&raftlogv1.SeriesCloseScope{Name: "s", Scope: []string{"C"}}, last, err)
	case 2:
		books := &raftlogv1.SeriesInBooks{
			Scope: []string{"B"}, Last: 1 + r.Int64N(4),
			LastDate: []*int32{nil, proto.Int32(int32(format.DateOf(2026, 1, 2)))}[r.IntN(2)], Closed: r.IntN(4) == 0,
		}
		m := &raftlogv1.SeriesResume{Name: "s", Books: []*raftlogv1.SeriesInBooks{books}, More: r.IntN(2) == 0}
		r.same(m, 0, r.beside.Resume(now, m.GetBooks(), m.GetMore()))
	case 3:
		if r.IntN(4) > 0 {
			r.reconcile(now)
			return
		}
		r.recover(Recovery{Keep: []string{"A", "B", "C"}})
		r.beside.Suspend()
	case 4, 5, 6:
		r.take(now, keys)
	default:
		r.end(now, keys)
	}
}

// define changes the definition, and where scopes begin.
func (r *seriesRun) define(now int64) {
	d, version := r.beside.Definition()
	begin := &raftlogv1.SeriesBegin{Scope: []string{[]string{"A", "B", "C"}[r.IntN(3)]}, First: 1 + r.Int64N(5)}
	d.MaxOpen = r.Int64N(3) + 9
	if r.IntN(3) == 0 {
		d.OnRelease, d.OnExpiry = series.OnRelease(r.IntN(2)), series.OnExpiry(r.IntN(3))
	}
	if r.IntN(4) == 0 {
		d.Format = []string{"{branch}-{number:3}", "{branch}/{number:3}"}[r.IntN(2)]
	}
	m := &raftlogv1.SeriesDefine{
		Name: "s", Definition: series.DefinitionMessage(d), ExpectedVersion: version, Begins: []*raftlogv1.SeriesBegin{begin},
	}
	err := r.beside.Redefine(now, d, version, begin)
	for range 2 { // The same call again changes nothing.
		r.same(m, version+1, err)
	}
}

// allot allots a range to a scope, or takes it back.
func (r *seriesRun) allot(now int64) {
	from := 1 + r.Int64N(20)
	m := &raftlogv1.SeriesAllot{
		Name: "s", Scope: []string{[]string{"A", "B"}[r.IntN(2)]}, Withdraw: r.IntN(4) == 0,
		Allotment: &raftlogv1.SeriesAllotment{From: from, To: from + r.Int64N(4), Note: "n"},
	}
	r.same(m, nil, r.beside.Allot(now, m))
}

// delete deletes the series, if it may, and begins another of its name.
func (r *seriesRun) delete(now int64) {
	d, version := r.beside.Definition()
	err := r.beside.At(now).CheckDelete(version)
	r.same(&raftlogv1.SeriesDelete{Name: "s", ExpectedVersion: version}, nil, err)
	if err != nil {
		return
	}
	if r.beside, err = series.New(d); err != nil {
		r.t.Fatal(err)
	}
	r.beside.BeginAt(r.now.UnixNano())
	if r.state.contents.floor.incomplete {
		r.beside.Suspend()
	}
	r.same(&raftlogv1.SeriesDefine{Name: "s", Definition: series.DefinitionMessage(d)}, int64(1), nil)
}

func (r *seriesRun) take(now int64, keys []string) {
	_, version := r.beside.Definition()
	m := &raftlogv1.SeriesTake{
		Name: "s", Values: []string{[]string{"A", "B", "C"}[r.IntN(3)]}, Keys: keys, UtcOffsetSeconds: 3600,
		Version: version, SinceUnixNano: r.beside.Since(),
	}
	if r.IntN(2) == 0 {
		m.Date = proto.Int32(int32(format.DateOf(2026, 1, 2)))
	}
	if r.IntN(4) == 0 {
		m.ExpiresInNanos, m.Label = int64(time.Minute), "till"
	}
	if r.IntN(8) == 0 { // The node that took the call knew another definition.
		m.Version, m.SinceUnixNano = version+r.Int64N(2), r.beside.Since()-r.Int64N(2)
	}
	if err := r.beside.CheckPresent(m.GetVersion(), m.GetSinceUnixNano()); err != nil {
		r.same(m, nil, err)
		return
	}
	numbers, err := r.beside.Take(now, m)
	r.same(m, numbers, err)
}

func (r *seriesRun) reconcile(now int64) {
	b := &raftlogv1.SeriesKey{Number: 1 + r.Int64N(5), Key: []string{"", fmt.Sprint("k", r.IntN(8))}[r.IntN(2)]}
	m := &raftlogv1.SeriesReconcile{
		Name: "s", Scope: []string{[]string{"A", "B", "C"}[r.IntN(3)]}, Reason: []string{"", "torn"}[r.IntN(2)],
		Numbers: []*raftlogv1.SeriesKey{b},
	}
	numbers, err := r.beside.Reconcile(now, m.GetScope(), m.GetNumbers(), m.GetReason())
	r.same(m, numbers, err)
}

func (r *seriesRun) end(now int64, keys []string) {
	m := &raftlogv1.SeriesEnd{Name: "s"}
	for _, k := range keys {
		m.Keys = append(m.Keys, &raftlogv1.SeriesKey{Key: k, Number: []int64{0, 0, 1}[r.IntN(3)]})
	}
	m.State = uint32([]series.NumberState{series.Confirmed, series.Voided, series.Released}[r.IntN(3)])
	if m.GetState() == uint32(series.Voided) {
		m.Reason = "torn"
	}
	numbers, err := r.beside.End(now, m)
	r.same(m, numbers, err)
}

// same applies an operation, and compares its outcome with that of the series beside.
func (r *seriesRun) same(m proto.Message, want any, failed error) {
	r.t.Helper()
	got := r.raw(onSeries(m))
	if (got.GetRefusal() != nil) != (failed != nil) {
		r.t.Fatalf("%v: got %v, want %v", m, got, failed)
	}
	if failed != nil {
		if got.GetRefusal().GetDetail() != failed.Error() || got.GetRefusal().GetReason() <= raftlogv1.RefusalReason_REFUSAL_REASON_INVALID {
			r.t.Fatalf("%v: got %v, want %v", m, got, failed)
		}
		return
	}
	switch want := want.(type) {
	case []*raftlogv1.SeriesNumber:
		answer := &raftlogv1.SeriesNumbers{Numbers: want}
		if _, take := m.(*raftlogv1.SeriesTake); take {
			answer.Begun = r.beside.Begun(want)
		}
		diff(r.t, answer, got.GetSeriesNumbers())
	case int64:
		if got.GetValue() != want {
			r.t.Fatalf("%v: got %v, want %d", m, got, want)
		}
	}
}

// TestEveryErrorOfASeriesHasAReason: a caller can act by the reason alone.
func TestEveryErrorOfASeriesHasAReason(t *testing.T) {
	for _, err := range []error{
		&series.Error{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL}, &format.FullError{}, &format.CollisionError{},
	} {
		if r := refuseSeries(err); r.Reason <= raftlogv1.RefusalReason_REFUSAL_REASON_INVALID ||
			r.Reason == raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID && r.Field == "" {
			t.Errorf("%T is refused with %s, %q", err, r.Reason, r.Field)
		}
	}
	inUse := &series.Error{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE}
	if r := refuseSeries(inUse); r.Reason != inUse.Reason {
		t.Errorf("a series in use is refused with %s", r.Reason)
	}
	for field, want := range map[string]string{"reset": "definition.reset_by", "keys": "keys"} {
		if r := refuseSeries(&series.Error{Field: field}); r.Field != want {
			t.Errorf("the field %s is %q to the caller", field, r.Field)
		}
	}
}

// importOf returns the operations that put the series of a state into another.
func importOf(t testing.TB, s *State) (operations [][]byte) {
	t.Helper()
	snapshot := s.Snapshot()
	defer snapshot.Close()
	err := snapshot.EachRecord(func(m *raftlogv1.SnapshotRecord) error {
		record := &raftlogv1.SeriesImport{}
		switch r := m.GetRecord().(type) {
		case *raftlogv1.SnapshotRecord_Series:
			record.Record = &raftlogv1.SeriesImport_Series{Series: r.Series}
		case *raftlogv1.SnapshotRecord_SeriesNumbers:
			record.Record = &raftlogv1.SeriesImport_Numbers{Numbers: r.SeriesNumbers}
		default:
			return nil
		}
		operations = append(operations, onSeries(record))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return operations
}

// withHistory returns a log with a series that has numbers in all states, more than one
// record of them, and a lost key.
func withHistory(t *testing.T) *testLog {
	t.Helper()
	l := newFormedLog(t)
	l.mustApplied(l.raw(seriesOperations()[0]))
	take := func(keys ...string) {
		l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"A"}, Keys: keys})))
	}
	end := func(state series.NumberState, key, reason string) {
		l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesEnd{
			Name: "s", State: uint32(state),
			Keys: []*raftlogv1.SeriesKey{{Key: key}}, Reason: reason,
		})))
	}
	for n := range 300 {
		take(fmt.Sprint("k", n))
	}
	end(series.Confirmed, "k0", "")
	end(series.Voided, "k1", "torn")
	end(series.Released, "k2", "")
	take("next")
	end(series.Released, "k3", "")
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"B"}, Keys: []string{"b"}})))
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesCloseScope{Name: "s", Scope: []string{"B"}})))
	return l
}

// TestASeriesIsImported into another cluster, as often as anyone likes: it has the same
// numbers there, and gives none until somebody resumes it.
func TestASeriesIsImported(t *testing.T) {
	from, to := withHistory(t), newFormedLog(t)
	// Some of its numbers have no key.
	from.recover(Recovery{Keep: []string{"A", "B", "C"}})
	from.mustApplied(from.raw(onSeries(&raftlogv1.SeriesResume{
		Name:  "s",
		Books: []*raftlogv1.SeriesInBooks{{Scope: []string{"A"}, Last: 305}},
	})))
	operations := importOf(t, from.state)
	if len(operations) != 4 { // The series, two records of A, and one of B.
		t.Fatalf("%d records", len(operations))
	}
	for _, o := range operations {
		to.mustApplied(to.raw(o))
		to.mustApplied(to.raw(o))
	}
	// A clock that ran ahead when the backup was taken does not come along.
	ahead := &raftlogv1.SeriesRecord{Name: "ahead", Definition: series.DefinitionMessage(reusing), Version: 1, TimeUnixNano: math.MaxInt64}
	to.mustApplied(to.raw(onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: ahead}})))
	to.state.ReadSeries("db", "ahead", func(_ NamedSeries, s *series.Series) {
		if m, _ := s.Freeze().Record(); m.GetTimeUnixNano() != to.now.UnixNano() {
			t.Errorf("the time of the series is %d", m.GetTimeUnixNano())
		}
	})
	got := (&seriesRun{testLog: to}).series()
	want := copied((&seriesRun{testLog: from}).series())
	want.Suspend()
	if got.Hash() != want.Hash() || verified(got) != nil {
		t.Errorf("imported with the hash %x, want %x: %v", got.Hash(), want.Hash(), verified(got))
	}
	take := onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"A"}, Keys: []string{"new"}})
	if r := to.raw(take); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED {
		t.Errorf("a restored series gave %v", r)
	}
	to.mustApplied(to.raw(onSeries(&raftlogv1.SeriesResume{Name: "s", Books: []*raftlogv1.SeriesInBooks{{Scope: []string{"A"}, Last: 310}}})))
	to.mustApplied(to.raw(take))
	to.mustApplied(to.raw(onSeries(&raftlogv1.SeriesReconcile{
		Name: "s", Scope: []string{"A"},
		Numbers: []*raftlogv1.SeriesKey{{Key: "k9", Number: 10}},
	})))
	// The backup again, at the limit: the series has gone on since, and goes on.
	to.mustApplied(to.do(opSet("max-name-bytes-total", 0)))
	hash := got.Hash()
	for _, o := range operations {
		to.mustApplied(to.raw(o))
	}
	if got.Hash() != hash || got.Suspended() {
		t.Error("the same backup changed a series that went on")
	}
}

// TestAnotherSeriesIsNotImported: a backup of another series of that name changes nothing,
// and one that has more than this one suspends it.
func TestAnotherSeriesIsNotImported(t *testing.T) {
	from := withHistory(t)
	operations := importOf(t, from.state)
	to := newFormedLog(t)
	to.now = to.now.Add(time.Second)
	to.mustApplied(to.raw(seriesOperations()[0]))
	to.mustApplied(to.raw(onSeries(&raftlogv1.SeriesTake{
		Name: "s", Values: []string{"A"}, Keys: []string{"mine"}, Version: 1,
		SinceUnixNano: to.now.UnixNano(),
	})))
	hash := (&seriesRun{testLog: to}).series().Hash()
	if r := to.raw(operations[0]); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS {
		t.Errorf("imported: %v", r)
	}
	for _, o := range operations[1:] {
		to.raw(o) // They are not of this series.
	}
	if got := (&seriesRun{testLog: to}).series(); got.Hash() != hash || got.Suspended() {
		t.Error("the series has changed")
	}
	// The same numbers, but the newest: this series was set back.
	to = newFormedLog(t)
	for _, o := range operations[:2] {
		to.mustApplied(to.raw(o))
	}
	to.mustApplied(to.raw(onSeries(&raftlogv1.SeriesResume{Name: "s"})))
	for _, o := range operations {
		to.mustApplied(to.raw(o))
	}
	if !(&seriesRun{testLog: to}).series().Suspended() {
		t.Error("a series that learnt of numbers from a backup goes on without a look into the books")
	}
}

// TestImportRefusesWhatNoBackupHas.
func TestImportRefusesWhatNoBackupHas(t *testing.T) {
	l := withHistory(t)
	origin := &raftlogv1.SeriesOrigin{SinceUnixNano: testTime.UnixNano()}
	for name, m := range map[string]*raftlogv1.SeriesImport{
		"nothing": {},
		"not folded": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name:       "Bills",
			Definition: series.DefinitionMessage(reusing), Version: 1,
		}}},
		"a control": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name:       "bills\x00",
			Definition: series.DefinitionMessage(reusing), Version: 1,
		}}},
		"the last one": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name:       "x",
			Definition: series.DefinitionMessage(reusing), Version: 1 << 53,
		}}},
		"no origin": {Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "s", Scope: []string{"C"},
			First: 1, Numbers: []*raftlogv1.SeriesStored{{Key: "x", State: 1}},
		}}},
		"no name": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Definition: series.DefinitionMessage(reusing),
			Version:    1,
		}}},
		"no definition": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{Name: "x", Version: 1}}},
		"a last version": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name:       "x",
			Definition: series.DefinitionMessage(reusing), Version: math.MaxInt64,
		}}},
		"no version": {Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{
			Name:       "x",
			Definition: series.DefinitionMessage(reusing),
		}}},
		"a hole": {Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "s", Scope: []string{"A"},
			First: 999, Numbers: []*raftlogv1.SeriesStored{{Key: "x", State: 1}}, Origin: origin,
		}}},
		"a wide state": {Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: "s", Scope: []string{"C"},
			First: 1, Numbers: []*raftlogv1.SeriesStored{{Key: "x", State: 257}}, Origin: origin,
		}}},
	} {
		hash := l.state.contents.hash()
		if r := l.raw(onSeries(m)); r.GetRefusal() == nil || l.state.contents.hash() != hash {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// TestSeriesAreSuspended by every recovery, which may lack the newest numbers, and not by a
// floor that rises: a restore suspends what it changes. Above a floor a series of a new name
// may not be new.
func TestSeriesAreSuspended(t *testing.T) {
	suspended := func(l *testLog) bool { return (&seriesRun{testLog: l}).series().Suspended() }
	for _, skip := range []int64{0, 100} {
		recovered := withHistory(t)
		recovered.recover(Recovery{Keep: []string{"A", "B", "C"}, SkipAhead: skip})
		if !suspended(recovered) {
			t.Errorf("skipped %d: a recovered series goes on", skip)
		}
	}
	l := withHistory(t)
	l.mustApplied(l.raw(encodePayload(&raftlogv1.MergeCluster{Floor: 100})))
	if suspended(l) {
		t.Error("a floor suspended a series that lacks nothing")
	}
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesDefine{Name: "new", Definition: series.DefinitionMessage(reusing)})))
	l.state.ReadSeries("db", "new", func(n NamedSeries, _ *series.Series) {
		if !n.Suspended {
			t.Error("above a floor a series began that may be known elsewhere")
		}
	})
}

// TestADeletedSeriesLeavesNothing: its name and its keys count no more, and the state is the one
// from before it.
func TestADeletedSeriesLeavesNothing(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesDefine{Name: "other", Definition: series.DefinitionMessage(reusing)})))
	before, hash := l.state.Counts(), l.state.contents.series.hash
	for range 2 {
		l.mustApplied(l.raw(seriesOperations()[0]))
		l.mustApplied(l.raw(seriesOperations()[1]))
		l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesEnd{Name: "s", State: uint32(series.Released), Keys: []*raftlogv1.SeriesKey{{Key: "a"}}})))
		l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"A"}, Keys: []string{"c"}})))
		if counts := l.state.Counts(); counts.SeriesKeys != 3 {
			t.Fatalf("%+v", counts)
		}
		l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesDelete{Name: "s", ExpectedVersion: 1})))
		if counts := l.state.Counts(); counts != before || l.state.contents.series.hash != hash {
			t.Errorf("after the deletion: %+v, want %+v", counts, before)
		}
		if used := l.state.contents.databases.used[0]; used != (databaseUse{names: 1, bytes: int64(len("other"))}) {
			t.Errorf("the database uses %+v", used)
		}
	}
}

// TestScopesAreNames of their database, as keys are: a limit bounds them, and a key that has its
// number is none.
func TestScopesAreNames(t *testing.T) {
	l := newFormedLog(t)
	take := func(branch, key string) *raftlogv1.Result {
		return l.raw(onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{branch}, Keys: []string{key}}))
	}
	l.mustApplied(l.raw(seriesOperations()[0]))
	l.mustApplied(take("berlin", "key-a"))
	want := databaseUse{names: 3, bytes: int64(len("s" + "berlin" + "key-a"))}
	if used := l.state.contents.databases.used[0]; used != want {
		t.Errorf("the database uses %+v, want %+v", used, want)
	}
	if used := restored(t, snapshotOf(t, l.state)).contents.databases.used[0]; used != want {
		t.Errorf("after a restart the database uses %+v, want %+v", used, want)
	}
	l.mustApplied(l.raw(encodePayload(&raftlogv1.SettingSet{Key: "max-names-per-database", Value: 4})))
	if why := take("paris", "key-b").GetRefusal(); why.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA {
		t.Errorf("a scope beyond the limit: %v", why)
	}
	l.mustApplied(take("Berlin", "key-b"))
	l.mustApplied(take("berlin", "key-a"))
}

// TestScopesThatBeginAreNames, too: a definition and the books are refused at the limit. A restore
// never is.
func TestScopesThatBeginAreNames(t *testing.T) {
	from, l := newFormedLog(t), newFormedLog(t)
	define := func(name, branch string, version int64) []byte {
		return onSeries(&raftlogv1.SeriesDefine{
			Name: name, Definition: series.DefinitionMessage(reusing), ExpectedVersion: version,
			Begins: []*raftlogv1.SeriesBegin{{Scope: []string{branch}, First: 7}},
		})
	}
	resume := func(branch string) []byte {
		return onSeries(&raftlogv1.SeriesResume{Name: "s", Books: []*raftlogv1.SeriesInBooks{{Scope: []string{branch}, Last: 9}}})
	}
	from.mustApplied(from.raw(define("s", "A", 0)))
	from.mustApplied(from.raw(onSeries(&raftlogv1.SeriesTake{Name: "s", Values: []string{"B"}, Keys: []string{"a", "b"}})))
	l.mustApplied(l.do(opSet("max-names-per-database", 1)))
	l.mustApplied(l.do(opSet("max-name-bytes-total", 1)))
	for _, o := range importOf(t, from.state) {
		l.mustApplied(l.raw(o))
	}
	full := func(what string, o []byte) {
		t.Helper()
		hash := l.state.contents.hash()
		if r := l.raw(o).GetRefusal(); r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA || l.state.contents.hash() != hash {
			t.Errorf("%s at the limit: %v", what, r)
		}
	}
	full("the books begin a scope", resume("C"))
	l.mustApplied(l.raw(resume("B")))
	full("a definition begins a scope", define("s", "C", 1))
	l.mustApplied(l.raw(define("s", "A", 1)))
	m := &raftlogv1.SeriesDefine{
		Name: "s", Definition: series.DefinitionMessage(reusing), ExpectedVersion: 2,
		Begins: []*raftlogv1.SeriesBegin{{Scope: []string{"C"}, First: 7}},
	}
	if _, _, r := l.state.PreviewSeries("db", l.now, m); r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA {
		t.Errorf("the preview at the limit: %v", r)
	}
	// There is room for the name of a series, and not for that of its scope.
	used := l.state.contents.databases.used[0]
	l.mustApplied(l.do(opSet("max-name-bytes-total", 1<<20)))
	l.mustApplied(l.do(opSet("max-names-per-database", used.names+1)))
	full("a series begins with a scope", define("t", "A", 0))
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesDefine{Name: "t", Definition: series.DefinitionMessage(reusing)})))
}

// TestASnapshotWithAWrongSeries is corrupt.
func TestASnapshotWithAWrongSeries(t *testing.T) {
	l := withHistory(t)
	record := &raftlogv1.SeriesRecord{Name: "x", Definition: series.DefinitionMessage(reusing), Version: 1}
	for name, put := range map[string]func(*contents) error{
		"in no database": func(c *contents) error {
			return c.series.restore(&raftlogv1.SeriesRecord{Database: 9, Name: "x", Definition: record.GetDefinition(), Version: 1})
		},
		"twice": func(c *contents) error {
			return errors.Join(c.series.restore(record), c.series.restore(record))
		},
		"of no definition":  func(c *contents) error { return c.series.restore(&raftlogv1.SeriesRecord{Name: "x", Version: 1}) },
		"numbers of no one": func(c *contents) error { return c.series.restoreNumbers(&raftlogv1.SeriesNumbersRecord{Name: "y"}) },
		"numbers with a hole": func(c *contents) error {
			return c.series.restoreNumbers(&raftlogv1.SeriesNumbersRecord{Name: "s", Scope: []string{"A"}, First: 999})
		},
		"a lost key of none": func(c *contents) error { return c.series.restoreLost(&raftlogv1.SeriesLostRecord{Name: "s"}) },
	} {
		c := restored(t, snapshotOf(t, l.state)).contents
		if err := put(c); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "series") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// verified finds the first number of a series that is not as it must be, and counts the states
// again: they are in no hash.
func verified(s *series.Series) error {
	if _, _, err := s.VerifySome(series.VerifyCursor{}, math.MaxInt); err != nil {
		return err
	}
	for _, sums := range s.Report(0, math.MaxInt, 0) {
		counted := series.Summary{
			Scope: sums.Scope, Last: sums.Last, LastDate: sums.LastDate, Closed: sums.Closed, Before: sums.Before, Overdue: sums.Overdue,
			Left: sums.Left, Allotments: sums.Allotments,
		}
		counts := map[series.NumberState]*int64{
			series.Open: &counted.Open, series.Confirmed: &counted.Confirmed, series.Voided: &counted.Voided,
			series.Released: &counted.Released, series.Unknown: &counted.Unknown,
		}
		for above, more := int64(0), true; more; more = above != 0 {
			numbers, next, err := s.Numbers(sums.Scope, 0, above, 1_000)
			if err != nil {
				return err
			}
			for _, n := range numbers {
				*counts[series.NumberState(n.GetState())]++
			}
			above = next
		}
		if !reflect.DeepEqual(counted, sums) {
			return fmt.Errorf("counted %+v, the series has %+v", counted, sums)
		}
	}
	return nil
}
