package fsm

import (
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// importRecord puts a record of a backup into a series. It may be repeated.
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
		piece := op.SeriesPieceOf(r.Numbers)
		keys := make([]string, 0, len(piece.Numbers))
		for _, n := range piece.Numbers {
			if n.Key != "" && !n.Shared {
				keys = append(keys, n.Key)
			}
		}
		return dst, s.importPart(o, r.Numbers.GetName(), keys, func(i *series.Series) error { return i.PutNumbers(piece) })
	case *raftlogv1.SeriesImport_Lost:
		lost := series.Lost{Key: r.Lost.GetKey(), Number: r.Lost.GetNumber(), Released: r.Lost.GetReleased()}
		return dst, s.importPart(o, r.Lost.GetName(), []string{lost.Key}, func(i *series.Series) error { return i.PutLost(lost) })
	default:
		return dst, invalid("record", "is empty")
	}
}

// importSeries begins the series of a backup. One that is there must give the same texts;
// its own definition stays. A clock that ran ahead does not come along.
func (s *seriesStore) importSeries(now moment, o *op.Operation, m *raftlogv1.SeriesRecord) *refusal {
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	d := op.DefinitionOf(m.GetDefinition())
	if i := s.find(s.databases.numberOf(o.Database), m.GetName()); i != nil {
		if own, _ := i.series.Definition(); own.Format != d.Format || own.Reset != d.Reset {
			return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS, "record",
				"series %.200q has the format %q, in the backup %q, or begins again at other times", m.GetName(), own.Format, d.Format)
		}
		return nil
	}
	if err := s.databases.roomFor(o.Database, 1, len(m.GetName())); err != nil {
		return err
	}
	at := min(m.GetTimeUnixNano(), now.unixNano)
	restored, err := series.Restore(d, m.GetVersion(), true, at, min(m.GetVoidedUntilUnixNano(), at))
	if err != nil {
		return refuseSeries(err)
	}
	s.databases.use(o.Database)
	s.add(s.databases.numberOf(o.Database), m.GetName(), restored)
	return nil
}

// importPart puts keys and their numbers into a series.
func (s *seriesStore) importPart(o *op.Operation, name string, keys []string, put func(*series.Series) error) *refusal {
	var full *refusal
	refused := s.in(o, name, func(i *series.Series) error {
		if full = s.roomForNew(o.Database, i, keys, ""); full != nil {
			return nil
		}
		before := i.Hash()
		err := put(i)
		if i.Hash() != before {
			i.Suspend()
		}
		return err
	})
	if full != nil {
		return full
	}
	return refused
}
