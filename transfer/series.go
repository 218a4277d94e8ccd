package transfer

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

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
var seriesColumns = []string{"database", "series", "scope", "number", "key", "state", "date", "label", "reason"}

// exportSeries writes the numbers of one database, or of all if it is empty, and returns how many.
func (b *Backup) exportSeries(to io.Writer, database string) (written int, err error) {
	w := csv.NewWriter(to)
	err = w.Write(seriesColumns)
	if err == nil {
		err = b.each(func(m *raftlogv1.SnapshotRecord) error {
			r, ok := m.GetRecord().(*raftlogv1.SnapshotRecord_SeriesNumbers)
			if !ok || database != "" && b.databases[r.SeriesNumbers.GetDatabase()] != database {
				return nil
			}
			written += len(r.SeriesNumbers.GetNumbers())
			return writeNumbers(w, b.databases[r.SeriesNumbers.GetDatabase()], r.SeriesNumbers)
		})
	}
	w.Flush()
	return written, errors.Join(err, w.Error())
}

func writeNumbers(w *csv.Writer, database string, r *raftlogv1.SeriesNumbersRecord) error {
	scope := strings.Join(r.GetScope(), ",")
	for i, n := range r.GetNumbers() {
		err := w.Write([]string{
			counterfile.Guarded(database), counterfile.Guarded(r.GetName()), scope, strconv.FormatInt(r.GetFirst()+int64(i), 10),
			counterfile.Guarded(n.GetKey()), series.State(min(n.GetState(), math.MaxUint8)).String(), format.Date(n.GetDate()).String(),
			counterfile.Guarded(n.GetLabel()), counterfile.Guarded(n.GetReason()),
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
			First: first, Numbers: numbers, Origin: r.GetOrigin(),
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
	_, err = invoke(ctx, r.Call, idnodev1.NewAdminServiceClient, idnodev1.AdminServiceClient.ImportSeries, req)
	return err
}
