package op

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

// PoolLayout returns the layout of a pool as it is in the log.
func PoolLayout(l snowflake.Layout) *raftlogv1.PoolLayout {
	return &raftlogv1.PoolLayout{
		EpochUnixMilli: l.Epoch, UnitMilli: l.Unit,
		TimeBits: int32(l.TimeBits), WorkerBits: int32(l.WorkerBits), SequenceBits: int32(l.SequenceBits),
	}
}

// LayoutOf returns a layout in the log.
func LayoutOf(m *raftlogv1.PoolLayout) snowflake.Layout {
	return snowflake.Layout{
		Epoch: m.GetEpochUnixMilli(), Unit: m.GetUnitMilli(),
		TimeBits: int(m.GetTimeBits()), WorkerBits: int(m.GetWorkerBits()), SequenceBits: int(m.GetSequenceBits()),
	}
}

// WorkerLease returns a lease as it is in the log.
func WorkerLease(l snowflake.Lease) *raftlogv1.WorkerLease {
	return &raftlogv1.WorkerLease{
		Worker: int32(l.Worker), Holder: l.Holder, Token: l.Token, From: l.From, Until: l.Until, Free: l.Free,
		Principal: l.Principal,
	}
}

// LeaseOf returns a lease in the log.
func LeaseOf(m *raftlogv1.WorkerLease) snowflake.Lease {
	return snowflake.Lease{
		Worker: int(m.GetWorker()), Holder: m.GetHolder(), Token: m.GetToken(), From: m.GetFrom(), Until: m.GetUntil(), Free: m.GetFree(),
		Principal: m.GetPrincipal(),
	}
}
