package transfer

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// SeriesName is a series of a database.
type SeriesName struct{ Database, Name string }

// RefusedSeries is a series of a backup that the cluster refuses.
type RefusedSeries struct {
	SeriesName
	// Reason is the refusal. A part of the series may have been merged before.
	Reason error
}

// SeriesOfBackup is what a cluster has of the series of a backup.
type SeriesOfBackup struct {
	// New are those that the cluster does not have, Active those that give numbers, and
	// Suspended those that do not.
	New, Active, Suspended []SeriesName
}

// importSeries puts the series of the backup into the cluster, record by record: some of a series'
// numbers fit behind those before them alone. One that is refused does not stop the others.
func (r *Restore) importSeries(ctx context.Context) (refused []RefusedSeries, err error) {
	leave := map[SeriesName]bool{}
	err = r.Backup.each(func(m *raftlogv1.SnapshotRecord) error {
		number, record := seriesRecord(m)
		if record == nil {
			return nil
		}
		name := SeriesName{Database: r.Backup.databases[number], Name: nameIn(record)}
		for _, part := range parts(record) {
			if leave[name] {
				return nil
			}
			err := r.importRecord(ctx, name.Database, part)
			if leave[name] = refusal(err); leave[name] {
				refused = append(refused, RefusedSeries{name, err})
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	return refused, err
}

// nameIn returns the name in a record, which is of one of these kinds.
func nameIn(record *raftlogv1.SeriesImport) string {
	return cmp.Or(record.GetSeries().GetName(), record.GetNumbers().GetName(), record.GetLost().GetName())
}

// refusal reports whether the cluster judged a record, and another may do better. Every
// other error is one of the whole restore, as OVERLOADED is.
func refusal(err error) bool {
	switch s := status.Convert(err); s.Code() {
	case codes.FailedPrecondition, codes.InvalidArgument, codes.AlreadyExists, codes.NotFound, codes.OutOfRange:
		return true
	case codes.ResourceExhausted:
		return slices.ContainsFunc(s.Details(), func(d any) bool {
			info, ok := d.(*errdetails.ErrorInfo)
			return ok && info.GetReason() == "QUOTA"
		})
	default:
		return false
	}
}

// SeriesHere returns what the cluster has of the backup's series. It needs the right to read them.
func (r *Restore) SeriesHere(ctx context.Context) (here SeriesOfBackup, err error) {
	suspended := map[SeriesName]bool{}
	asked := map[string]bool{}
	for _, name := range r.Backup.Series {
		if asked[name.Database] {
			continue
		}
		asked[name.Database] = true
		if err := r.listSeries(ctx, name.Database, suspended); err != nil {
			return SeriesOfBackup{}, err
		}
	}
	for _, name := range r.Backup.Series {
		switch isSuspended, known := suspended[name]; {
		case !known:
			here.New = append(here.New, name)
		case isSuspended:
			here.Suspended = append(here.Suspended, name)
		default:
			here.Active = append(here.Active, name)
		}
	}
	return here, nil
}

func (r *Restore) listSeries(ctx context.Context, database string, suspended map[SeriesName]bool) error {
	req := &idnodev1.ListSeriesRequest{Database: database, PageSize: 1000}
	for {
		page, err := invoke(ctx, r.Call, idnodev1.NewSeriesServiceClient, idnodev1.SeriesServiceClient.ListSeries, req)
		if err != nil {
			return err
		}
		for _, s := range page.GetSeries() {
			suspended[SeriesName{database, s.GetName()}] = s.GetSuspended()
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return nil
		}
	}
}
