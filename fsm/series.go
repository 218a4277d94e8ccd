package fsm

import (
	"sync"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

type seriesItem = compound[*series.Series, series.Frozen]

// seriesStore has the series of document numbers. Their keys are its parts; keys and scopes count
// as names of their database.
type seriesStore struct {
	compoundStore[*series.Series, series.Frozen]
}

func newSeriesStore(databases *databaseStore) seriesStore {
	return seriesStore{newCompoundStore(recordSeries, "series", databases, func(s *series.Series) (parts, names, bytes int64) {
		keys, bytes := s.Keys()
		scopes, more := s.Scopes()
		return keys, keys + scopes, bytes + more
	})}
}

func (s *seriesStore) records(lock sync.Locker) records {
	return recordsOfEach(s.freezeAll(lock), seriesRecords)
}

// seriesRecords are a series, then its numbers, then the keys that lost theirs.
func seriesRecords(s frozen[series.Frozen]) records {
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		own, origin := s.is.Record()
		own.Database, own.Name = s.db, s.name
		if !yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Series{Series: own}}) {
			return
		}
		for p := range s.is.Pieces {
			p.Database, p.Name, p.Origin = s.db, s.name, origin
			if !yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesNumbers{SeriesNumbers: p}}) {
				return
			}
		}
		for lost := range s.is.Lost {
			lost.Database, lost.Name = s.db, s.name
			if !yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesLost{SeriesLost: lost}}) {
				return
			}
		}
	}
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
	if err := s.change(i, put); err != nil {
		return corrupt("series %q: %v", m.GetName(), err)
	}
	return nil
}
