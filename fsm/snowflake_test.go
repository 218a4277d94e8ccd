package fsm

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

func definePool(unit int64, window time.Duration, forget bool) *raftlogv1.Operation {
	layout := transcriptLayout
	layout.Unit = unit
	return &raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_PoolDefine{PoolDefine: &raftlogv1.PoolDefine{
		Name: "pool", Layout: op.PoolLayout(layout), WindowNanos: int64(window), Forget: forget,
	}}}
}

// TestAPoolThatForgotIsRestored: whatever units the definitions of a restore have, each snapshot can be read.
func TestAPoolThatForgotIsRestored(t *testing.T) {
	units := []int64{1, 7, 11, 13, 1000}
	for _, unit := range units {
		for _, other := range units {
			for _, window := range []time.Duration{snowflake.MinWindow, time.Minute, snowflake.MaxWindow} {
				l := newFormedLog(t)
				l.mustApplied(l.do(definePool(unit, window, false)))
				l.mustApplied(l.do(definePool(other, snowflake.MaxWindow, true)))
				l.restores()
			}
		}
	}
}

// ms is a window of a worker, in milliseconds since 1970 UTC.
type ms struct{ from, until int64 }

// TestWindowsNeverOverlapThroughDeletions: databases are deleted, and their pools defined again, under leaders whose
// clocks jump by hours, in layouts of other units, and through recoveries.
func TestWindowsNeverOverlapThroughDeletions(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newFormedLog(t)
		given := map[int32][]ms{}
		for n := range rapid.IntRange(1, 200).Draw(r, "operations") {
			later := rapid.SampledFrom([]time.Duration{-2 * time.Hour, 0, 0, time.Minute, 2 * time.Hour})
			l.now = l.now.Add(later.Draw(r, "later"))
			switch rapid.IntRange(0, 4).Draw(r, "operation") {
			case 0:
				l.raw(encodeIn(op.Envelope{Database: "db"}, &raftlogv1.DatabaseDelete{}))
				l.restores()
			case 1:
				l.do(definePool(rapid.SampledFrom([]int64{1, 7, 10}).Draw(r, "unit"), time.Hour, false))
			case 2:
				l.recover(Recovery{Keep: []string{"A"}})
			default:
				lease := l.do(&raftlogv1.Operation{Database: "db", Op: &raftlogv1.Operation_WorkerAcquire{WorkerAcquire: &raftlogv1.WorkerAcquire{
					Pool: "pool", Holder: fmt.Sprint(n % 2), Token: uint64(n + 1), HolderUnixNano: l.now.UnixNano(),
				}}}).GetWorkerLease()
				if lease == nil {
					continue
				}
				in := op.LayoutOf(lease.GetLayout())
				got := ms{in.UnixMilli(lease.GetFrom()), in.UnixMilli(lease.GetUntil())}
				for _, before := range given[lease.GetWorker()] {
					if got.from < before.until && before.from < got.until {
						t.Fatalf("worker %d has the windows %v and %v", lease.GetWorker(), before, got)
					}
				}
				given[lease.GetWorker()] = append(given[lease.GetWorker()], got)
			}
		}
	})
}

// TestARecoveryKeepsWhereNewPoolsBegin: behind the windows that a clock which was ahead gave, and not by the time of a
// clock.
func TestARecoveryKeepsWhereNewPoolsBegin(t *testing.T) {
	l := newFormedLog(t)
	l.now = l.now.Add(2 * time.Hour)
	l.mustApplied(l.raw(poolOf("pool")))
	take := func() *raftlogv1.Result {
		return l.raw(onSeries(&raftlogv1.WorkerAcquire{Pool: "pool", Holder: "a", Token: 1, HolderUnixNano: l.now.UnixNano()}))
	}
	l.mustApplied(take())
	l.now = l.now.Add(time.Hour)
	l.deleteDatabase("db")
	l.now = testTime
	l.recover(Recovery{Keep: []string{"A"}})
	l.restores()
	l.mustApplied(l.raw(poolOf("pool")))
	for _, later := range []time.Duration{0, time.Hour} {
		l.now = testTime.Add(later)
		if r := take(); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL {
			t.Errorf("after %s: %v", later, r)
		}
	}
	l.now = testTime.Add(2*time.Hour + time.Minute)
	l.mustApplied(take())
}
