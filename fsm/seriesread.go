package fsm

import "github.com/idnode/idnode/series"

// NamedSeries is a series in a list.
type NamedSeries struct {
	// Name is the folded name.
	Name string
	// Definition is what it was last asked to be, Version how often, and Since when its numbers
	// began.
	Definition     series.Definition
	Version, Since int64
	// Suspended means that it gives no numbers.
	Suspended bool
	// Keys is how many it knows.
	Keys int64
}

func (i *seriesItem) named() NamedSeries {
	n := NamedSeries{Name: i.name, Since: i.series.Since(), Suspended: i.series.Suspended(), Keys: i.keys}
	n.Definition, n.Version = i.series.Definition()
	return n
}

// SeriesList returns a page of the series of a database, as Identities does.
func (s *State) SeriesList(db, prefix, after string, limit int) []NamedSeries {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return pageOf(c, db, page{prefix, after, limit}, c.series.ascend, (*seriesItem).place, (*seriesItem).named)
}

// ReadSeries calls read with a series, and returns false if it does not exist. Until read returns
// nothing is applied, so it must be quick, and must not change the series or keep it.
func (s *State) ReadSeries(db, name string, read func(NamedSeries, *series.Series)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.contents.databases.number(db)
	if !ok {
		return false
	}
	i := s.contents.series.find(n, name)
	if i == nil {
		return false
	}
	read(i.named(), i.series)
	return true
}
