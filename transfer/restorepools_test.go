package transfer

import (
	"testing"
	"time"

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
