package fsm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

func (l *testLog) deleteDatabase(name string) (forgotten int64) {
	l.t.Helper()
	for more := true; more; {
		r := l.raw(encodeIn(op.Envelope{Database: name}, &raftlogv1.DatabaseDelete{}))
		deleted := l.mustApplied(r).GetDatabaseDeleted()
		forgotten, more = forgotten+deleted.GetNames(), deleted.GetMore()
	}
	return forgotten
}

// restores fails if the state, restored from its snapshot, is another one.
func (l *testLog) restores() {
	l.t.Helper()
	other := restored(l.t, snapshotOf(l.t, l.state))
	diff(l.t, hashFromScratch(l.state.contents), l.state.contents.hash())
	diff(l.t, l.state.contents.hash(), other.contents.hash())
	diff(l.t, l.state.Databases(), other.Databases())
}

// TestADatabaseEnds: with its last name a database no longer counts, whether the names were forgotten one by
// one or all together. Another database can take its place, and has none of its data.
func TestADatabaseEnds(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("max-databases", 2)))
	first, second := "db", "second"
	next := func(database string) *raftlogv1.Result {
		return l.raw(inDatabaseOf(database, opNext("orders", 1)))
	}
	value := func(database string) int64 {
		t.Helper()
		return l.mustApplied(next(database)).GetIdentityNext().GetValues()[0].GetFirst()
	}
	value(first)
	value(second)
	if r := next("third"); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA {
		t.Fatalf("a third database was answered %v, want a refusal for QUOTA", r)
	}
	l.mustApplied(l.raw(inDatabaseOf(second, opDelete("orders", true))))
	if got := value("third"); got != 1 {
		t.Errorf("the first value in a new database is %d", got)
	}
	if got := l.state.Databases(); !slices.Equal(got, []string{"db", "third"}) {
		t.Errorf("there are the databases %q", got)
	}
	l.restores()

	// A released id, a claim, a hidden identity, a tag and many identities.
	for i := range 5 {
		l.mustApplied(l.do(opClaimID(fmt.Sprintf("orders/%d", 2+i))))
	}
	value(first)
	l.mustApplied(l.do(opReleaseID("orders/3")))
	l.mustApplied(l.do(opNext("hidden", 1)))
	l.mustApplied(l.do(opDelete("hidden", false)))
	l.mustApplied(l.do(opHiLo(&raftlogv1.HiLoNext{Tag: "users", Size: 32})))
	for i := range 2 * deletedInEntry {
		l.mustApplied(l.do(opNext(fmt.Sprint("name", i), 1)))
	}
	if got := l.deleteDatabase(first); got != 2*deletedInEntry+8 {
		t.Errorf("%d names were forgotten", got)
	}
	l.restores()
	if got := l.deleteDatabase(first) + l.deleteDatabase("unknown"); got != 0 {
		t.Errorf("%d names of nothing were forgotten", got)
	}
	if got := value("fourth"); got != 1 {
		t.Errorf("the first value in the place of another database is %d", got)
	}
	if r := l.raw(inDatabaseOf("fourth", opClaimID("orders/3"))); r.GetRefusal() != nil {
		t.Errorf("a claim was refused: %v", r.GetRefusal())
	}
	l.restores()
	if r := next(first); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA {
		t.Errorf("the deleted database is used again beside two others: %v", r)
	}
}

// TestWhatHoldsADatabase: a series, and the windows of a pool.
func TestWhatHoldsADatabase(t *testing.T) {
	l := newFormedLog(t)
	remove := func() *raftlogv1.Result {
		return l.raw(encodeIn(op.Envelope{Database: "db"}, &raftlogv1.DatabaseDelete{}))
	}
	l.mustApplied(l.do(opNext("orders", 1)))
	l.mustApplied(l.raw(define("invoices", 0, plain)))
	if r := remove(); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE {
		t.Errorf("a database with a series: %v", r)
	}
	l.mustApplied(l.raw(onSeries(&raftlogv1.SeriesDelete{Name: "invoices", ExpectedVersion: 1})))
	l.mustApplied(l.raw(poolOf("pool")))
	l.mustApplied(l.raw(acquire("pool", 1)))
	l.mustApplied(l.raw(poolOf("another"))) // Nobody uses it.
	for _, passed := range []time.Duration{0, time.Minute, snowflake.Apart - time.Second} {
		l.now = l.now.Add(passed)
		r := remove().GetRefusal()
		if r.GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_POOL_IN_USE || r.GetField() != "database" {
			t.Errorf("a database with a window: %v", r)
		}
	}
	if got := l.mustApplied(l.do(opNext("orders", 1))).GetIdentityNext().GetValues()[0].GetFirst(); got != 2 {
		t.Errorf("a refused deletion has forgotten a counter: it gave %d", got)
	}
	l.now = l.now.Add(time.Second)
	if got := l.deleteDatabase("db"); got != 4 {
		t.Errorf("%d names were forgotten, want the identity, two pools and a worker", got)
	}
	l.restores()
}
