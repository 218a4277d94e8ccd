// Package webpage is the page at / on a node's HTTP port, for people.
//
// It owns the files of the page, which are embedded in the program and refer to nothing outside of
// it, the manual below /docs/, to which its alarms lead, the headers that bind a browser to them, and
// the calls below /page/api/. Those have what the public API has not, and are internal to the page;
// all else the page asks of that API, on the same port (see package jsonapi). The HTTP server refuses
// what another origin sends (see package httpapi), and this package host names that are not the
// cluster's.
package webpage

import (
	"encoding/json"
	"net/http"
	"time"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/server/history"
	"github.com/idnode/idnode/server/hostcheck"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/service"
)

// Config is what a Page is made of. All fields are needed.
type Config struct {
	Service *service.Service
	// Public is the API that makes the page's other calls. Its errors are the page's.
	Public *jsonapi.API
	// Issued returns how many ids the node has handed out since it was started, by strategy.
	Issued  func() map[string]uint64
	Recent  func() *peerv1.Figures
	Busiest *history.Busiest
}

// Page answers for the page's files and its calls. It is safe for concurrent use.
type Page struct {
	cfg   Config
	past  history.History
	began time.Time
}

// New returns a Page.
func New(cfg Config) *Page { return &Page{cfg: cfg, began: time.Now()} }

// Handle adds the page by handle, which takes patterns of http.ServeMux.
func (p *Page) Handle(handle func(pattern string, handler http.Handler)) {
	p.handleAssets(handle)
	HandleManual(handle)
	for name, call := range map[string]func(*http.Request) (any, error){
		"overview": p.overview, "history": p.history, "explain": p.explain, "etags": p.etags, "audit": p.audit, "numbers": p.numbers,
	} {
		handle("GET "+api+name, p.handler(call))
	}
	handle("POST "+api+"backup", p.guarded(p.backup))
}

const api = "/page/api/"

// handler answers a call with JSON, also if it fails.
func (p *Page) handler(call func(*http.Request) (any, error)) http.Handler {
	return p.guarded(func(w http.ResponseWriter, r *http.Request) {
		answer, err := call(r)
		if err != nil {
			p.cfg.Public.Fail(w, err)
			return
		}
		body, err := json.Marshal(answer)
		if err != nil {
			panic(err) // a type of this package that has no JSON form
		}
		jsonapi.Write(w, http.StatusOK, body)
	})
}

func (p *Page) guarded(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if err := hostcheck.Check(r, p.cfg.Service.CheckHost); err != nil {
			p.cfg.Public.Fail(w, err)
			return
		}
		answer(w, r)
	})
}
