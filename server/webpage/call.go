package webpage

import (
	"encoding/json"
	"net/http"

	"github.com/idnode/idnode/server/hostcheck"
	"github.com/idnode/idnode/server/jsonapi"
)

// api is where the page's calls are.
const api = "/page/api/"

// read answers a call that changes nothing.
type read func(r *http.Request) (any, error)

// handleCalls adds all calls of the page.
func (p *Page) handleCalls(handle func(pattern string, handler http.Handler)) {
	for name, call := range map[string]read{
		"overview": p.overview, "history": p.history, "explain": p.explain, "etags": p.etags, "audit": p.audit,
	} {
		handle("GET "+api+name, p.handler(call))
	}
	handle("POST "+api+"backup", p.guarded(p.backup))
}

// handler answers a call with JSON, also if it fails.
func (p *Page) handler(call read) http.Handler {
	return p.guarded(func(w http.ResponseWriter, r *http.Request) {
		answer, err := call(r)
		if err != nil {
			p.public.Fail(w, err)
			return
		}
		body, err := json.Marshal(answer)
		if err != nil {
			panic(err) // a type of this package that has no JSON form
		}
		jsonapi.Write(w, http.StatusOK, body)
	})
}

// guarded refuses foreign host names.
func (p *Page) guarded(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if err := hostcheck.Check(r, p.service.CheckHost); err != nil {
			p.public.Fail(w, err)
			return
		}
		answer(w, r)
	})
}
