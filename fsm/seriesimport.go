package fsm

import (
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// importRecord puts a record of a backup into a series. It may be repeated. No limit of names
// refuses it: what a cluster had, another can have again.
//
// Invariant: a series that a record changes is suspended. The backup may lack the newest
// numbers, or the series did.
func (s *seriesStore) importRecord(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesImport
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SeriesImport_Series:
		return dst, s.importSeries(now, o, r.Series)
	case *raftlogv1.SeriesImport_Numbers:
		return dst, s.importNumbers(o, r.Numbers)
	case *raftlogv1.SeriesImport_Lost:
		return dst, s.in(o, r.Lost.GetName(), func(*series.Series) error { return nil })
	default:
		return dst, invalid("record", "is empty")
	}
}

// importSeries begins the series of a backup, or merges it into that of its name. A clock
// that ran ahead does not come along.
func (s *seriesStore) importSeries(now moment, o *op.Operation, m *raftlogv1.SeriesRecord) *refusal {
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	if docid.Fold(m.GetName()) != m.GetName() {
		return invalid("name", "is not folded: the series could not be found")
	}
	backup := series.Backup{
		Definition: op.DefinitionOf(m.GetDefinition()), Version: m.GetVersion(), Since: m.GetSinceUnixNano(),
		Now: min(m.GetTimeUnixNano(), now.unixNano), Final: m.GetFinal(),
	}
	if s.find(s.databases.numberOf(o.Database), m.GetName()) != nil {
		return s.in(o, m.GetName(), func(i *series.Series) error { return i.Merge(backup) })
	}
	if err := checkSeriesName(m.GetName()); err != nil {
		return err
	}
	restored, err := backup.New()
	if err != nil {
		return refuseSeries(err)
	}
	s.databases.use(o.Database)
	s.add(s.databases.numberOf(o.Database), m.GetName(), restored)
	return nil
}

// importNumbers merges numbers of a backup into a series.
func (s *seriesStore) importNumbers(o *op.Operation, m *raftlogv1.SeriesNumbersRecord) *refusal {
	if m.GetOrigin() == nil {
		return invalid("origin", "is missing")
	}
	piece, origin := op.SeriesPieceOf(m), op.SeriesOriginOf(m.GetOrigin())
	return s.in(o, m.GetName(), func(i *series.Series) error { return i.MergeNumbers(piece, origin) })
}
