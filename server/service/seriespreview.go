package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// tryDefinition says what a definition would do to what there is, as new as the cluster's.
func (n *numbers) tryDefinition(ctx context.Context, database string, m *raftlogv1.SeriesDefine) (fsm.SeriesPreview, error) {
	if err := n.linearize(ctx); err != nil {
		return fsm.SeriesPreview{}, err
	}
	// The roles are as new as the answer now.
	if err := n.authorize(ctx, rights.Series, database, m.GetName()); err != nil {
		return fsm.SeriesPreview{}, err
	}
	preview, refused := n.state.PreviewSeries(database, time.Now(), m)
	if refused != nil {
		return preview, refusalError(refused)
	}
	return preview, nil
}

// preview says what a definition means today.
func (n *numbers) preview(p *idnodev1.SeriesPreview, f *format.Format, to definedAs) {
	now := time.Now()
	today := format.DateAt(now.UnixNano(), n.zones.offset(to.TimeZone, now))
	p.Values = f.Names()
	if next, ok := f.BeginsAgain(today); ok {
		p.BeginsAgain = next.String()
	}
	date, values, first := today, f.Samples(), int64(1)
	if len(to.Begins) > 0 {
		begin := to.Begins[0]
		if day, given, err := f.ParseScope(begin.Scope); err == nil {
			date, values, first = dayWithin(f, begin.Scope, given, today, day), given, begin.First
		}
	}
	for _, number := range []int64{first, first + 1} {
		if text, err := f.Format(date, values, number); err == nil {
			p.Texts = append(p.Texts, text)
		}
	}
}

// dayWithin returns today if it is in a scope, and else the scope's first day.
func dayWithin(f *format.Format, scope, values []string, today, first format.Date) format.Date {
	if now, err := f.Scope(today, values); err == nil && slices.EqualFunc(now, scope, strings.EqualFold) {
		return today
	}
	return first
}
