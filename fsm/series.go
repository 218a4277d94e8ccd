package fsm

import (
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

type seriesItem = named[*series.Series]

// seriesStore has the series of document numbers. Their keys are its parts; keys and scopes count
// as names of their database.
type seriesStore struct{ namedStore[*series.Series] }

func newSeriesStore(databases *databaseStore) seriesStore {
	return seriesStore{newNamedStore(recordSeries, "series", databases, func(s *series.Series) (parts, names, bytes int64) {
		keys, bytes := s.Keys()
		scopes, more := s.Scopes()
		return keys, keys + scopes, bytes + more
	})}
}

// restore takes over a series of a snapshot, still without numbers.
func (s *seriesStore) restore(m *raftlogv1.SeriesRecord) error {
	if err := s.checkRestore(m.GetDatabase(), m.GetName()); err != nil {
		return err
	}
	restored, err := series.Restore(m)
	if err != nil {
		return corrupt("series %q: %v", m.GetName(), err)
	}
	s.add(m.GetDatabase(), m.GetName(), restored)
	return nil
}

// restoreNumbers takes over some numbers of a series of a snapshot.
func (s *seriesStore) restoreNumbers(m *raftlogv1.SeriesNumbersRecord) error {
	return s.restoreIn(m, func(i *series.Series) error { return i.PutNumbers(m) })
}

// restoreLost takes over a key whose number another key has.
func (s *seriesStore) restoreLost(m *raftlogv1.SeriesLostRecord) error {
	return s.restoreIn(m, func(i *series.Series) error { return i.PutLost(m) })
}

// seriesPart is a record of a part of a series.
type seriesPart interface {
	GetDatabase() uint32
	GetName() string
}

func (s *seriesStore) restoreIn(m seriesPart, put func(*series.Series) error) error {
	i := s.find(m.GetDatabase(), m.GetName())
	if i == nil {
		return corrupt("a part of series %q before it", m.GetName())
	}
	if err := put(i.is); err != nil {
		return corrupt("series %q: %v", m.GetName(), err)
	}
	s.changed(i)
	return nil
}
