package transfer

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// importSeries puts the series of the backup into the cluster, record by record: some of a
// series' numbers fit behind those before them alone.
func (r *Restore) importSeries(ctx context.Context) error {
	return r.Backup.each(func(m *raftlogv1.SnapshotRecord) error {
		database, record := seriesRecord(m)
		if record == nil {
			return nil
		}
		data, err := proto.Marshal(record)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Backup.Path, err)
		}
		req := &idnodev1.ImportSeriesRequest{Database: r.Backup.databases[database], Record: data}
		return r.Call(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			_, err := idnodev1.NewAdminServiceClient(conn).ImportSeries(ctx, req)
			return err
		})
	})
}
