package transfer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// TestPoolsAreRestored with their layouts and windows, and without leases: others were given since.
func TestPoolsAreRestored(t *testing.T) {
	b := open(t,
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: &raftlogv1.PoolRecord{
			Name: "orders", Window: 6000,
			Layout: &raftlogv1.PoolLayout{EpochUnixMilli: 1, UnitMilli: 10, TimeBits: 39, WorkerBits: 16, SequenceBits: 8},
		}}},
		&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_WorkerLease{WorkerLease: &raftlogv1.WorkerLease{Holder: "a", Until: 5}}},
	)
	var cluster recorder
	floors := []counterfile.Counter{{Database: "shop", Kind: counterfile.Identity, Name: "i", Value: 9000}}
	if _, err := (&Restore{Backup: b, Conn: &cluster, Floors: floors}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	floor := false // The floors come first: a pool may be refused.
	for _, m := range cluster.requests {
		if req, ok := m.(*idnodev1.MergeCountersRequest); ok {
			floor = !req.GetDryRun() && req.GetDatabases()[0].GetIdentities()[0].GetValue() == 9000
		}
		if req, ok := m.(*idnodev1.DefinePoolRequest); ok {
			l := req.GetLayout()
			if !floor || req.GetDatabase() != "shop" || req.GetName() != "orders" || !req.GetForgetLeases() ||
				req.GetWindow().AsDuration() != time.Minute ||
				l.GetEpoch().AsTime().UnixMilli() != 1 || l.GetUnit().AsDuration() != 10*time.Millisecond || l.GetSequenceBits() != 8 {
				t.Errorf("%v", req)
			}
			return
		}
	}
	t.Error("the pool was not restored")
}

// TestABackupListsItsPools, with the workers whose windows had not ended when it was taken: in 1970, the second after the epoch.
func TestABackupListsItsPools(t *testing.T) {
	record := func(r *raftlogv1.PoolRecord) *raftlogv1.SnapshotRecord {
		return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: r}}
	}
	lease := func(worker int32, until int64, free bool) *raftlogv1.SnapshotRecord {
		return &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_WorkerLease{WorkerLease: &raftlogv1.WorkerLease{
			Worker: worker, Holder: "a", Until: until, Free: free,
		}}}
	}
	database := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}}
	layout := &raftlogv1.PoolLayout{EpochUnixMilli: -1000, UnitMilli: 10, TimeBits: 39, WorkerBits: 16, SequenceBits: 8}
	b := open(t, database,
		record(&raftlogv1.PoolRecord{Name: "carts", Window: 6000, Layout: layout}), lease(0, 100, false), lease(1, 101, false),
		lease(2, 500, true), lease(3, 500, false),
		record(&raftlogv1.PoolRecord{Name: "orders", Window: 1000, Layout: layout}))
	var got []string
	for _, p := range b.Info.GetPools() {
		got = append(got, fmt.Sprintf("%s/%s: %s, %d in use, %s", p.GetDatabase(), p.GetName(), p.GetWindow().AsDuration(), p.GetInUse(),
			LayoutText(p.GetLayout())))
	}
	const text = "39 bits of 10ms since 1969-12-31T23:59:59Z, 16 of the worker, 8 of the sequence"
	want := []string{"shop/carts: 1m0s, 2 in use, " + text, "shop/orders: 10s, 0 in use, " + text}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, records := range map[string][]*raftlogv1.SnapshotRecord{
		"a lease before its pool":         {database, lease(0, 100, false)},
		"a pool in a database it has not": {record(&raftlogv1.PoolRecord{Name: "p", Layout: layout})},
	} {
		if _, err := Open(write(t, records...)); !errors.Is(err, backup.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
