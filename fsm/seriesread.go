package fsm

import (
	"time"

	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// NamedSeries is a series in a list.
type NamedSeries struct {
	// Name is the folded name.
	Name string
	// Definition is what it was last asked to be, Version how often, Since when its numbers began.
	Definition     series.Definition
	Version, Since int64
	// Suspended means that it gives no numbers.
	Suspended bool
	// Keys is how many it knows.
	Keys int64
}

func namedSeries(i *seriesItem) NamedSeries {
	n := NamedSeries{Name: i.name, Since: i.is.Since(), Suspended: i.is.Suspended(), Keys: i.parts}
	n.Definition, n.Version = i.is.Definition()
	return n
}

// SeriesList returns a page of the series of a database, as Identities does.
func (s *State) SeriesList(db, prefix, after string, limit int) []NamedSeries {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	show := func(e table.Entry[*seriesItem]) NamedSeries { return namedSeries(e.Value) }
	return list(c, c.series.byName, db, page{prefix, after, limit}, show)
}

// ReadSeries calls read with a series, and returns false if it does not exist. Until read returns
// nothing is applied, so it must be quick, and must not change the series or keep it.
func (s *State) ReadSeries(db, name string, read func(NamedSeries, *series.Series)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.contents.series.find(s.contents.databases.numberOf([]byte(db)), name)
	if i != nil {
		read(namedSeries(i), i.is)
	}
	return i != nil
}

// PreviewSeries says what the definition of a series would do, or why it would be refused: what
// would be forgotten, and whether the series would give no numbers. Nothing changes.
func (s *State) PreviewSeries(db string, now time.Time, m *raftlogv1.SeriesDefine) (
	forgets series.Forgotten, suspended bool, refused *raftlogv1.Refusal,
) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	call := seriesCall{seriesStore: &c.series, database: []byte(db), now: now.UnixNano(), floor: c.floor}
	i := call.find(m.GetName())
	if i == nil {
		fresh, why := call.fresh(m)
		return forgets, why == nil && fresh.Suspended(), why.message()
	}
	suspended = i.is.Suspended()
	d, begins := series.DefinitionOf(m.GetDefinition()), m.GetBegins()
	if i.is.Repeats(d, m.GetExpectedVersion(), begins...) {
		return forgets, suspended, nil
	}
	if full := call.roomFor(i.is, nil, begun(begins)); full != nil {
		return forgets, suspended, full.message()
	}
	forgets, err := i.is.At(call.now).Preview(d, m.GetExpectedVersion(), begins...)
	return forgets, suspended, refuseSeries(err).message()
}
