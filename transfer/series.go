package transfer

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/transfer/counterfile"
)

// SeriesCSV has a line for each number of the series. It is for people and their
// spreadsheets, and cannot be read back: a restore has the series.
const SeriesCSV Form = "series"

// seriesColumns are the first line of that form.
var seriesColumns = []string{"database", "series", "scope", "number", "text", "key", "state", "date", "label", "reason", "note"}

// exportSeries writes the numbers of one database, or of all if it is empty, and returns how many.
func (b *Backup) exportSeries(to io.Writer, database string) (written int, err error) {
	w := csv.NewWriter(to)
	var f *format.Format // That of the series whose numbers come next.
	err = w.Write(seriesColumns)
	if err == nil {
		err = b.each(func(m *raftlogv1.SnapshotRecord) error {
			if s := m.GetSeries(); s != nil {
				f = formatOf(s)
			}
			r, ok := m.GetRecord().(*raftlogv1.SnapshotRecord_SeriesNumbers)
			if !ok {
				return nil
			}
			name := b.Info.Databases[r.SeriesNumbers.GetDatabase()].GetDatabase()
			if database != "" && name != database {
				return nil
			}
			written += len(r.SeriesNumbers.GetNumbers())
			return writeNumbers(w, name, f, r.SeriesNumbers)
		})
	}
	w.Flush()
	return written, errors.Join(err, w.Error())
}

// formatOf returns the format of a series; nil of one that a restore would refuse.
func formatOf(s *raftlogv1.SeriesRecord) *format.Format {
	f, err := format.Define(s.GetDefinition().GetFormat(), series.DefinitionOf(s.GetDefinition()).Reset)
	switch {
	case err != nil:
		return nil
	case f.Scrambled():
		return f.WithSecret(s.GetSecret())
	}
	return f
}

func writeNumbers(w *csv.Writer, database string, f *format.Format, r *raftlogv1.SeriesNumbersRecord) error {
	scope, text, numberAt := strings.Join(r.GetScope(), ","), "", series.NumbersOf(r)
	for i, n := range r.GetNumbers() {
		number, note := numberAt(r.GetFirst() + int64(i))
		if f != nil {
			values := r.GetScope()[max(0, len(r.GetScope())-len(f.Names())):]
			text, _ = f.Format(format.Date(n.GetDate()), values, number)
		}
		err := w.Write([]string{
			counterfile.Guarded(database), counterfile.Guarded(r.GetName()), scope, strconv.FormatInt(number, 10),
			counterfile.Guarded(text), counterfile.Guarded(n.GetKey()),
			series.NumberState(min(n.GetState(), math.MaxUint8)).String(), format.Date(n.GetDate()).String(),
			counterfile.Guarded(n.GetLabel()), counterfile.Guarded(n.GetReason()), counterfile.Guarded(note),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// importedAtOnce is how many numbers one call imports. The largest have some 360 bytes, and
// what a call says must fit into 64 KiB of the log.
const importedAtOnce = 128

// parts cuts a record that has more numbers than one call may have.
func parts(record *raftlogv1.SeriesImport) (all []*raftlogv1.SeriesImport) {
	r := record.GetNumbers()
	if len(r.GetNumbers()) <= importedAtOnce {
		return []*raftlogv1.SeriesImport{record}
	}
	first := r.GetFirst()
	for numbers := range slices.Chunk(r.GetNumbers(), importedAtOnce) {
		part := &raftlogv1.SeriesNumbersRecord{
			Database: r.GetDatabase(), Name: r.GetName(), Scope: r.GetScope(), Closed: r.GetClosed(), Begin: r.GetBegin(),
			First: first, Numbers: numbers, Origin: r.GetOrigin(), Allotments: r.GetAllotments(), Allotted: r.GetAllotted(),
		}
		all = append(all, &raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: part}})
		first += int64(len(numbers))
	}
	return all
}

func (r *Restore) importRecord(ctx context.Context, database string, record *raftlogv1.SeriesImport) error {
	data, err := proto.Marshal(record)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Backup.Path, err)
	}
	req := &idnodev1.ImportSeriesRequest{Database: database, Record: data}
	for {
		res, err := idnodev1.NewAdminServiceClient(r.Conn).ImportSeries(ctx, req)
		if err != nil || !res.GetMore() {
			return err
		}
	}
}

// SeriesName is a series of a database.
type SeriesName struct{ Database, Name string }

// SeriesOfBackup is what a cluster has of the series of a backup.
type SeriesOfBackup struct {
	// New are those that the cluster does not have, Active those that give numbers, and
	// Suspended those that do not.
	New, Active, Suspended []SeriesName
}

// importSeries puts the series of the backup into the cluster, record by record: some of a series'
// numbers fit behind those before them alone. One that is refused does not stop the others.
func (r *Restore) importSeries(ctx context.Context, done *Restored) error {
	leave := map[SeriesName]bool{}
	return r.Backup.each(func(m *raftlogv1.SnapshotRecord) error {
		number, record := seriesRecord(m)
		if record == nil {
			return nil
		}
		name := SeriesName{Database: r.Backup.Info.Databases[number].GetDatabase(), Name: nameIn(record)}
		for _, part := range parts(record) {
			if leave[name] {
				return nil
			}
			err := r.importRecord(ctx, name.Database, part)
			if leave[name] = refusal(err); leave[name] {
				done.NotMerged = append(done.NotMerged, NotMerged{"series", name.Database, name.Name, err})
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

// nameIn returns the name in a record, which is of one of these kinds.
func nameIn(record *raftlogv1.SeriesImport) string {
	return cmp.Or(record.GetSeries().GetName(), record.GetNumbers().GetName())
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
	listed := map[string]map[string]bool{}
	for _, name := range r.Backup.Series {
		suspended, done := listed[name.Database]
		if !done {
			if suspended, err = r.listSeries(ctx, name.Database); err != nil {
				return SeriesOfBackup{}, err
			}
			listed[name.Database] = suspended
		}
		switch isSuspended, known := suspended[name.Name]; {
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

// listSeries returns the series of a database, and of each whether it is suspended.
func (r *Restore) listSeries(ctx context.Context, database string) (map[string]bool, error) {
	suspended := map[string]bool{}
	req := &idnodev1.ListSeriesRequest{Database: database, PageSize: 1000}
	for {
		page, err := idnodev1.NewSeriesServiceClient(r.Conn).ListSeries(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, s := range page.GetSeries() {
			suspended[s.GetName()] = s.GetSuspended()
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return suspended, nil
		}
	}
}
