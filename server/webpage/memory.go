package webpage

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/history"
)

const (
	// observeEvery is how often the node looks at itself. What lasts less is not remembered.
	observeEvery = time.Second
	// busiest is how many names are shown, auditLines how many lines of the audit log.
	busiest    = 10
	auditLines = 100
)

// Follow remembers what the node does until ctx ends. It is called once.
func (p *Page) Follow(ctx context.Context) {
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	for {
		p.observe(time.Since(p.began))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Page) observe(now time.Duration) {
	s := p.cfg.Service.Status()
	o := history.Observation{
		Issued: p.cfg.Issued(), CommitP99: p.cfg.Recent().GetCommitP99Micros(), Leader: s.LeaderTag, Alarms: map[string]history.Alarm{},
	}
	for _, m := range s.Members {
		if m.Role != idnodev1.Role_ROLE_REMOVED {
			o.Members = append(o.Members, m.Tag)
		}
	}
	for _, a := range alarmsOf(s) {
		text := a.Title
		if a.Name == "" { // The title is that of all warnings.
			text = a.Text
		}
		o.Alarms[a.Title] = history.Alarm{Text: text, Critical: a.Critical}
	}
	p.past.Observe(now, o)
	p.cfg.Busiest.Turn(now)
}

// past is what the node remembers.
type past struct {
	Millis int64 `json:"millis"`
	Every  int64 `json:"every_millis"`
	// Strategies are those of the samples' rates.
	Strategies []string         `json:"strategies"`
	Samples    []history.Sample `json:"samples"`
	Events     []history.Event  `json:"events"`
	// Busiest are names that the viewer may read.
	Busiest []history.Rate `json:"busiest"`
}

func (p *Page) history(r *http.Request) (any, error) {
	now := time.Since(p.began)
	shown := func(n history.Name) bool {
		return p.cfg.Service.Rights(r.Context(), n.Database, n.Name)&rights.Read != 0
	}
	samples := p.past.Samples()
	if !p.cfg.Service.MayRead(r.Context()) { // The rates are of all databases.
		for i := range samples {
			clear(samples[i].Rates[:])
		}
	}
	return past{
		Millis: now.Milliseconds(), Every: history.Every.Milliseconds(), Strategies: history.Strategies[:],
		Samples: samples, Events: p.past.Events(), Busiest: p.cfg.Busiest.Top(now, busiest, shown),
	}, nil
}

// audit answers with the newest lines of the node's audit log, oldest first; null if it keeps none.
func (p *Page) audit(r *http.Request) (any, error) {
	lines, err := p.cfg.Service.AuditTail(r.Context(), auditLines)
	return struct {
		Lines []json.RawMessage `json:"lines"`
	}{lines}, err
}
