package fsm

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// seriesItem is a series of document numbers, and where it is.
type seriesItem struct {
	db     uint32
	name   string
	series *series.Series
	// hash and keys are what of the series is in the store's sums, names and bytes what is in
	// the database's use.
	hash               uint64
	keys, names, bytes int64
}

func (i *seriesItem) less(j *seriesItem) bool {
	return cmp.Or(cmp.Compare(i.db, j.db), cmp.Compare(i.name, j.name)) < 0
}

// seriesStore has the series of document numbers. Their keys and scopes count as names of their
// database.
//
// Invariant: hash, keys and the database's use equal the sums over the present series. A caller
// of a series' method that can change it must call changed, even after an error.
type seriesStore struct {
	byName    *btree.BTreeG[*seriesItem]
	databases *databaseStore
	hash      statehash.Sum
	// keys counts those of all series.
	keys int64
}

func newSeriesStore() seriesStore {
	return seriesStore{byName: btree.NewBTreeGOptions((*seriesItem).less, btree.Options{NoLocks: true})} // State has one.
}

// find returns nil if there is no such series.
func (s *seriesStore) find(db uint32, name string) *seriesItem {
	i, _ := s.byName.Get(&seriesItem{db: db, name: name})
	return i
}

func (i *seriesItem) place() (db uint32, name string) { return i.db, i.name }

func (s *seriesStore) ascend(db uint32, name string, yield func(*seriesItem) bool) {
	s.byName.Ascend(&seriesItem{db: db, name: name}, yield)
}

// add stores a series that does not exist.
func (s *seriesStore) add(db uint32, name string, is *series.Series) *seriesItem {
	i := &seriesItem{db: db, name: name, series: is}
	s.byName.Set(i)
	s.databases.count(db, name, 1)
	s.changed(i)
	return i
}

func (s *seriesStore) remove(i *seriesItem) {
	s.byName.Delete(i)
	s.hash.Remove(i.hash)
	s.keys -= i.keys
	s.databases.grow(i.db, -i.names, -i.bytes)
	s.databases.count(i.db, i.name, -1)
}

// changed takes what a series is now into the sums.
func (s *seriesStore) changed(i *seriesItem) {
	s.hash.Remove(i.hash)
	i.hash = hashSeries(i.db, i.name, i.series.Hash())
	s.hash.Add(i.hash)
	keys, bytes := i.series.Keys()
	scopes, more := i.series.Scopes()
	names, bytes := keys+scopes, bytes+more
	s.databases.grow(i.db, names-i.names, bytes-i.bytes)
	s.keys += keys - i.keys
	i.keys, i.names, i.bytes = keys, names, bytes
}

// suspendAll suspends all series: others may have given newer numbers.
func (s *seriesStore) suspendAll() {
	s.byName.Scan(func(i *seriesItem) bool {
		i.series.Suspend()
		s.changed(i)
		return true
	})
}

func checkSeriesName(name string) *refusal {
	if r, found := docid.FirstInvisible(name); found {
		return invalid("name", "has the character %U, which cannot be seen", r)
	}
	return nil
}

// frozenSeries is a series of a snapshot.
type frozenSeries struct {
	db   uint32
	name string
	series.Frozen
}

func (s *seriesStore) freeze() []frozenSeries {
	all := make([]frozenSeries, 0, s.byName.Len())
	s.byName.Scan(func(i *seriesItem) bool {
		all = append(all, frozenSeries{db: i.db, name: i.name, Frozen: i.series.Freeze()})
		return true
	})
	return all
}

// restore takes over a series of a snapshot, still without numbers.
func (s *seriesStore) restore(m *raftlogv1.SeriesRecord) error {
	if err := s.databases.restoreName(m.GetDatabase(), "series", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	if s.find(m.GetDatabase(), m.GetName()) != nil {
		return corrupt("series %q twice", m.GetName())
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
	if err := put(i.series); err != nil {
		return corrupt("series %q: %v", m.GetName(), err)
	}
	s.changed(i)
	return nil
}
