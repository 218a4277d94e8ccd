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

// past is what the node remembers. Columns have one value for each sample.
type past struct {
	Millis int64 `json:"millis"`
	Every  int64 `json:"every_millis"`
	// At is when samples ended, by the time of Millis.
	At        []int64              `json:"at_millis"`
	Rates     map[string][]float32 `json:"ids_per_second"`
	CommitP99 []uint32             `json:"commit_p99_micros"`
	Events    []event              `json:"events"`
	// Busiest are names that the viewer may read.
	Busiest []busy `json:"busiest"`
}

type event struct {
	history.Event
	At int64 `json:"millis"`
}

// busy is a name and its ids a second over the last one to two minutes.
type busy struct {
	Kind     string  `json:"kind"`
	Database string  `json:"database"`
	Name     string  `json:"name"`
	Rate     float64 `json:"ids_per_second"`
}

func (p *Page) history(r *http.Request) (any, error) {
	now := time.Since(p.began)
	samples, events := p.past.Samples(), p.past.Events()
	answer := past{
		Millis: now.Milliseconds(), Every: history.Every.Milliseconds(), At: make([]int64, len(samples)),
		Rates: map[string][]float32{}, CommitP99: make([]uint32, len(samples)), Events: make([]event, len(events)),
		Busiest: p.busy(r, now),
	}
	for of, strategy := range history.Strategies {
		rates := make([]float32, len(samples))
		for i, s := range samples {
			rates[i] = s.Rates[of]
		}
		answer.Rates[strategy] = rates
	}
	for i, s := range samples {
		answer.At[i], answer.CommitP99[i] = s.At.Milliseconds(), s.CommitP99
	}
	for i, e := range events {
		answer.Events[i] = event{e, e.At.Milliseconds()}
	}
	return answer, nil
}

func (p *Page) busy(r *http.Request, now time.Duration) []busy {
	shown := func(n history.Name) bool {
		return p.cfg.Service.Rights(r.Context(), n.Database, n.Name)&rights.Read != 0
	}
	top := p.cfg.Busiest.Top(now, busiest, shown)
	names := make([]busy, len(top))
	for i, t := range top {
		names[i] = busy{t.Kind, t.Database, t.Name.Name, t.PerSecond}
	}
	return names
}

// audit answers with the newest lines of the node's audit log, oldest first; null if it keeps none.
func (p *Page) audit(r *http.Request) (any, error) {
	lines, err := p.cfg.Service.AuditTail(r.Context(), auditLines)
	return struct {
		Lines []json.RawMessage `json:"lines"`
	}{lines}, err
}
