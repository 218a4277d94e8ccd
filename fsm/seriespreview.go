package fsm

import (
	"time"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// SeriesPreview is what the definition of a series would do.
type SeriesPreview struct {
	// Forgets is how many open numbers would be forgotten.
	Forgets int64
	// Suspended means that the series would give no numbers.
	Suspended bool
}

// PreviewSeries says what the definition of a series would do, or why it would be refused.
// Nothing changes.
func (s *State) PreviewSeries(db string, now time.Time, m *raftlogv1.SeriesDefine) (SeriesPreview, *raftlogv1.Refusal) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	preview, refused := s.contents.series.preview([]byte(db), now.UnixNano(), m, s.contents.floor)
	return preview, refused.message()
}

func (s *seriesStore) preview(database []byte, now int64, m *raftlogv1.SeriesDefine, floor floor) (SeriesPreview, *refusal) {
	i := s.find(s.databases.numberOf(database), m.GetName())
	if i == nil {
		fresh, refused := s.fresh(database, m, floor)
		return SeriesPreview{Suspended: refused == nil && fresh.Suspended()}, refused
	}
	d, begins := op.DefinitionOf(m.GetDefinition()), op.BeginsOf(m.GetBegins())
	p := SeriesPreview{Suspended: i.series.Suspended()}
	if i.series.Repeats(d, m.GetExpectedVersion(), begins...) {
		return p, nil
	}
	if full := s.roomForScopes(database, i.series, begun(begins)); full != nil {
		return p, full
	}
	forgets, err := i.series.Preview(now, d, m.GetExpectedVersion(), begins...)
	p.Forgets = forgets
	return p, refuseSeries(err)
}
