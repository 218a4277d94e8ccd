package metrics

import (
	"context"
	"iter"
	"math"
	"sort"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/pause"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

const (
	// surveyEvery is the pause between two looks at all counters, and surveyShare
	// how many times as long as a look the pause is at least: it takes a hundredth
	// of one processor at most, however many counters there are.
	surveyEvery = time.Minute
	surveyShare = 100
	// surveyPage is how many counters are read at once: reading holds up writing.
	surveyPage = 500
	// passedMost is how many looks are remembered: those of a day.
	passedMost = int(24 * time.Hour / surveyEvery)
)

// Names are the counters that the cluster agrees on; *fsm.State has them.
type Names interface {
	Databases() []string
	Identities(database, prefix, after string, limit int) []fsm.NamedIdentity
	HiLos(database, prefix, after string, limit int) []fsm.NamedHiLo
	SeriesList(database, prefix, after string, limit int) []fsm.NamedSeries
	ReadSeries(database, name string, read func(fsm.NamedSeries, *series.Series)) bool
	Pools(database, prefix, after string, limit int, now time.Time) []fsm.NamedPool
	LimitsUsed() map[string]float64
	AppliedIndex() uint64
}

// space knows what is used up, as of the last look through the state.
type space struct {
	found atomic.Pointer[found]
	// passed are the newest looks, oldest first.
	passed atomic.Pointer[[]passed]
}

// found is what a look found.
type found struct {
	// identity and hilo are the greatest counters. They end at 2^63-1; they never get there by
	// counting, but one that was seeded close to it does.
	identity, hilo int64
	// series is which share the fullest series of a database has used, and ends when the layout of its
	// first pool ends, in seconds since 1970.
	series, ends map[string]float64
	limits       map[string]float64
}

// passed is how far the state was at a time.
type passed struct {
	at    time.Time
	index uint64
}

func newSpace() *space {
	s := &space{}
	s.found.Store(&found{})
	s.passed.Store(&[]passed{})
	return s
}

func (s *space) ratios(etags map[string]uint64) map[string]float64 {
	var newest uint64
	for _, last := range etags {
		newest = max(newest, last)
	}
	f := s.found.Load()
	return map[string]float64{
		strategies[docid.Identity]:   float64(f.identity) / math.MaxInt64,
		strategies[strategyHiLo]:     float64(f.hilo) / math.MaxInt64,
		strategies[docid.ServerSide]: float64(newest) / float64(uint64(etag.MaxEtag)),
	}
}

// since returns how long ago the state was at a log index, in seconds: not more than that. It is infinite
// if that was before the looks that are remembered.
func (s *space) since(index uint64) float64 {
	looks := *s.passed.Load()
	switch i := sort.Search(len(looks), func(i int) bool { return looks[i].index >= index }); i {
	case 0:
		return math.Inf(1)
	case len(looks):
		return 0
	default:
		return time.Since(looks[i].at).Seconds()
	}
}

// Survey looks through all counters for the fullest, again and again until ctx ends. A counter
// that was seeded lower, or forgotten, counts no more at the next look.
func (m *Metrics) Survey(ctx context.Context, names Names) {
	for more := true; more; {
		began := time.Now()
		m.space.look(ctx, names)
		more = pause.For(ctx, max(surveyEvery, surveyShare*time.Since(began)))
	}
}

func (s *space) look(ctx context.Context, names Names) {
	looks := *s.passed.Load()
	looks = append(looks[max(0, len(looks)+1-passedMost):len(looks):len(looks)], passed{time.Now(), names.AppliedIndex()})
	s.passed.Store(&looks)
	f := &found{series: map[string]float64{}, ends: map[string]float64{}, limits: names.LimitsUsed()}
	for _, db := range names.Databases() {
		f.database(ctx, names, db)
	}
	if ctx.Err() == nil {
		s.found.Store(f)
	}
}

func (f *found) database(ctx context.Context, names Names, db string) {
	for i := range all(ctx, func(after string) []fsm.NamedIdentity { return names.Identities(db, "", after, surveyPage) },
		func(i fsm.NamedIdentity) string { return i.Name }) {
		f.identity = max(f.identity, i.Last)
	}
	for h := range all(ctx, func(after string) []fsm.NamedHiLo { return names.HiLos(db, "", after, surveyPage) },
		func(h fsm.NamedHiLo) string { return h.Tag }) {
		f.hilo = max(f.hilo, h.Max)
	}
	for s := range all(ctx, func(after string) []fsm.NamedSeries { return names.SeriesList(db, "", after, surveyPage) },
		func(s fsm.NamedSeries) string { return s.Name }) {
		f.series[db] = max(f.series[db], fullest(ctx, names, db, s.Name))
	}
	now := time.Now()
	for p := range all(ctx, func(after string) []fsm.NamedPool { return names.Pools(db, "", after, surveyPage, now) },
		func(p fsm.NamedPool) string { return p.Name }) {
		end := float64(p.Layout.UnixMilli(p.Layout.End())) / 1000
		if first, other := f.ends[db]; !other || end < first {
			f.ends[db] = end
		}
	}
}

// fullest returns which share a series has used.
func fullest(ctx context.Context, names Names, db, name string) (share float64) {
	today := format.DateAt(time.Now().UnixNano(), 0)
	for from, more := 0, true; more && ctx.Err() == nil; from += surveyPage {
		more = false
		names.ReadSeries(db, name, func(_ fsm.NamedSeries, s *series.Series) {
			share, more = s.Fullest(today, from, surveyPage, share)
		})
	}
	return share
}

// all yields what is in a list, which is read in pages.
func all[T any](ctx context.Context, page func(after string) []T, name func(T) string) iter.Seq[T] {
	return func(yield func(T) bool) {
		after := ""
		for ctx.Err() == nil {
			items := page(after)
			for _, item := range items {
				if after = name(item); !yield(item) {
					return
				}
			}
			if len(items) < surveyPage {
				return
			}
		}
	}
}
