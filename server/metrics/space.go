package metrics

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/pause"
)

const (
	// surveyEvery is the pause between two looks at all counters, and surveyShare
	// how many times as long as a look the pause is at least: it takes a hundredth
	// of one processor at most, however many counters there are.
	surveyEvery = time.Minute
	surveyShare = 100
	// surveyPage is how many counters are read at once: reading holds up writing.
	surveyPage = 500
)

// Names are the counters that the cluster agrees on; *fsm.State has them.
type Names interface {
	Databases() []string
	Identities(database, prefix, after string, limit int) []fsm.NamedIdentity
	HiLos(database, prefix, after string, limit int) []fsm.NamedHiLo
}

// space knows how full the fullest counters are. Counters end at 2^63-1; they
// never get there by counting, but one that was seeded close to it does.
type space struct{ identity, hilo atomic.Int64 }

func (s *space) ratios(etags map[string]uint64) map[string]float64 {
	var newest uint64
	for _, last := range etags {
		newest = max(newest, last)
	}
	return map[string]float64{
		strategies[docid.Identity]:   float64(s.identity.Load()) / math.MaxInt64,
		strategies[strategyHiLo]:     float64(s.hilo.Load()) / math.MaxInt64,
		strategies[docid.ServerSide]: float64(newest) / float64(uint64(etag.MaxEtag)),
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
	var identity, hilo int64
	for _, db := range names.Databases() {
		identity = max(identity, greatest(ctx, func(after string) []fsm.NamedIdentity {
			return names.Identities(db, "", after, surveyPage)
		}, func(i fsm.NamedIdentity) (string, int64) { return i.Name, i.Last }))
		hilo = max(hilo, greatest(ctx, func(after string) []fsm.NamedHiLo {
			return names.HiLos(db, "", after, surveyPage)
		}, func(h fsm.NamedHiLo) (string, int64) { return h.Tag, h.Max }))
	}
	if ctx.Err() == nil {
		s.identity.Store(identity)
		s.hilo.Store(hilo)
	}
}

func greatest[T any](ctx context.Context, page func(after string) []T, read func(T) (name string, value int64)) int64 {
	var most int64
	after := ""
	for ctx.Err() == nil {
		items := page(after)
		for _, item := range items {
			name, value := read(item)
			after, most = name, max(most, value)
		}
		if len(items) < surveyPage {
			break
		}
	}
	return most
}
