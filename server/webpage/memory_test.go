package webpage

import (
	"fmt"
	"testing"
	"time"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/httpapi"
	"github.com/idnode/idnode/server/service"
)

// TestHistory: what the node saw, second by second, is there afterwards.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	walk(t, s, []step{{get, "history", "", 200, `{"every_millis":10000,"samples":[],"events":[],"busiest":[]}`}})
	second := 0
	watch := func(seconds int) {
		for range seconds {
			w.page.observe(time.Duration(second) * time.Second)
			second++
		}
	}
	watch(11)
	w.loseQuorum()
	watch(10)
	w.busiest.Count("identity", "default", "<b>", 60)
	walk(t, s, []step{{get, "history", "", 200, `{
		"strategies":["identity","hilo","server_side","guid","semantic","series"],
		"samples":[{"millis":10000,"commit_p99_micros":900,"ids_per_second":[0,0,0,0,0,0]},
			{"millis":20000,"commit_p99_micros":900,"ids_per_second":[0,0,0,0,0,0]}],
		"events":[{"millis":0,"kind":"started"},{"kind":"leader","text":"A"},
			{"millis":11000,"kind":"leader","text":""},
			{"millis":11000,"kind":"alarm","text":"No quorum.","critical":true}],
		"busiest":[{"kind":"identity","database":"default","name":"<b>","ids_per_second":60}]}`}})
}

// TestHistoryIsSmall, whatever there was.
func TestHistoryIsSmall(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	for second := range 3 * 3600 {
		w.change = func(status *service.ClusterStatus) { status.LeaderTag = "ABC"[second%3 : second%3+1] }
		w.page.observe(time.Duration(second) * time.Second)
	}
	if answer := send(s, get, api+"history", ""); answer.Body.Len() > 100_000 {
		t.Errorf("%d bytes", answer.Body.Len())
	}
}

// TestBusiestNamesAreForReaders: a name is shown to those who may read it, and to no others.
func TestBusiestNamesAreForReaders(t *testing.T) {
	w := newWorld(t)
	as := w.withRoles()
	w.busiest.Count("identity", "shop", "bills", 60)
	w.busiest.Count("identity", "other", "secret", 600)
	wantJSON(t, as("dns:guest", "history"), 200, `{"busiest":[{"name":"bills"}]}`)
	wantJSON(t, as("dns:shop", "history"), 200, `{"busiest":[{"name":"secret"},{"name":"bills"}]}`)
}

// TestAuditLog is for those with the right cluster.
func TestAuditLog(t *testing.T) {
	w := newWorld(t)
	as := w.withRoles()
	wantJSON(t, as("dns:ops", "audit"), 200, `{"lines":null}`)
	wantJSON(t, as("dns:shop", "audit"), 403, `{"reason":"PERMISSION_DENIED"}`)
}

// TestSeriesAreCounted in what the state holds.
func TestSeriesAreCounted(t *testing.T) {
	w := newWorld(t)
	define := &raftlogv1.SeriesDefine{Name: "invoices", Definition: series.DefinitionMessage(series.Definition{Format: "{number}"})}
	w.Must(op.Envelope{Database: "default"}, define)
	wantJSON(t, send(w.newServer(httpapi.Config{}), get, api+"overview", ""), 200, `{"status":{"counts":{"series":"1","seriesKeys":"0"}}}`)
}

// TestAllSeriesAreAsked for a document's number: in one call, however many there are.
func TestAllSeriesAreAsked(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	for i := range 301 {
		name := fmt.Sprintf("s%03d", i)
		w.Must(op.Envelope{Database: "default"},
			&raftlogv1.SeriesDefine{Name: name, Definition: series.DefinitionMessage(series.Definition{Format: name + "-{number:4}"})})
	}
	for _, take := range []*raftlogv1.SeriesTake{
		{Name: "s000", Version: 1, Keys: []string{"doc-1"}}, {Name: "s300", Version: 1, Keys: []string{"doc-1", "doc-2"}},
	} {
		take.SinceUnixNano = w.State.SeriesList("default", take.GetName(), "", 1)[0].Since
		w.Must(op.Envelope{Database: "default"}, take)
	}
	for of, want := range map[string]string{
		"doc-1":     `[{"series":"s000","number":{"text":"s000-0001"}},{"series":"s300","number":{"text":"s300-0001"}}]`,
		"s300-0002": `[{"series":"s300","number":{"key":"doc-2"}}]`,
		"doc-3":     `[]`,
	} {
		wantJSON(t, send(s, get, api+"numbers?of="+of, ""), 200, `{"numbers":`+want+`}`)
	}
	wantJSON(t, w.withRoles()("dns:shop", "numbers?of=doc-1"), 403, `{"reason":"PERMISSION_DENIED"}`)
}
