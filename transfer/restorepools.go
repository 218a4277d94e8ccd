package transfer

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// addPool notes a pool of workers. Its leases are of no use: the cluster gave others since.
func (b *Backup) addPool(p *raftlogv1.PoolRecord) error {
	if int(p.GetDatabase()) >= len(b.databases) {
		return fmt.Errorf("%s: %w: a pool is in database %d of %d", b.Path, backup.ErrCorrupt, p.GetDatabase(), len(b.databases))
	}
	b.pools = append(b.pools, p)
	return nil
}

// definePools begins the pools of the backup. All leases end, since the newest are not known.
func (r *Restore) definePools(ctx context.Context) error {
	for _, p := range r.Backup.pools {
		l := p.GetLayout()
		unit := time.Duration(l.GetUnitMilli()) * time.Millisecond
		req := &idnodev1.DefinePoolRequest{
			Database: r.Backup.databases[p.GetDatabase()], Name: p.GetName(), ForgetLeases: true,
			Window: durationpb.New(time.Duration(p.GetWindow()) * unit),
			Layout: &idnodev1.PoolLayout{
				Epoch: timestamppb.New(time.UnixMilli(l.GetEpochUnixMilli())), Unit: durationpb.New(unit),
				TimeBits: l.GetTimeBits(), WorkerBits: l.GetWorkerBits(), SequenceBits: l.GetSequenceBits(),
			},
		}
		err := r.Call(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			_, err := idnodev1.NewWorkersServiceClient(conn).DefinePool(ctx, req)
			return err
		})
		if err != nil {
			return fmt.Errorf("pool %.200q of database %q: %w", p.GetName(), req.GetDatabase(), err)
		}
	}
	return nil
}
