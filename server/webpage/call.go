package webpage

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/idnode/idnode/server/hostcheck"
	"github.com/idnode/idnode/server/service"
)

// maxBody bounds the body of a call: the longest id, escaped, and what goes with
// it.
const maxBody = 32 << 10

// api is where the page's calls are.
const api = "/page/api/"

// read answers a call that changes nothing.
type read func(r *http.Request) (any, error)

// handleCalls adds all calls of the page.
func (p *Page) handleCalls(handle func(pattern string, handler http.Handler)) {
	reads := map[string]read{
		"overview": p.overview, "explain": p.explain, "identity": p.identity, "hilo": p.hilo,
		"identities": p.identities, "hilos": p.hilos, "claims": p.claims, "etags": p.etags, "databases": p.databases,
		"series": p.series, "series/scopes": p.scopes, "series/number": p.number, "series/unknown": p.unknown,
		"series/preview": p.previewSeries,
		"settings":       p.settings, "roles": p.roles,
	}
	for name, call := range reads {
		handle("GET "+api+name, p.handler(call))
	}
	changes := map[string]read{
		"ids": change(p.makeIDs), "ranges": change(p.takeRange), "ranges/return": change(p.returnRange),
		"identities/seed": change(p.seedIdentity), "identities/delete": change(p.deleteIdentity),
		"hilos/raise": change(p.raiseHiLo), "claims/claim": change(p.claim), "claims/release": change(p.release),
		"series/define": change(p.defineSeries), "series/reconcile": change(p.reconcile),
		"members/lead": change(p.transferLeadership), "members/remove": change(p.removeMember),
	}
	for name, call := range changes {
		handle("POST "+api+name, p.handler(call))
	}
	handle("POST "+api+"backup", p.guarded(p.backup))
}

// change makes a call of one that takes a body.
func change[T any](do func(r *http.Request, body T) (any, error)) read {
	return func(r *http.Request) (any, error) {
		var body T
		if err := decode(r, &body); err != nil {
			return nil, err
		}
		return do(r, body)
	}
}

// handler answers a call with JSON, also if it fails.
func (p *Page) handler(call read) http.Handler {
	return p.guarded(func(w http.ResponseWriter, r *http.Request) {
		answer, err := call(r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// guarded bounds the body of a call, and refuses foreign host names.
func (p *Page) guarded(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := hostcheck.Check(r, p.service.CheckHost); err != nil {
			writeError(w, err)
			return
		}
		answer(w, r)
	})
}

// decode reads the one JSON object of a body into v. The content type is part of
// the defence: no form of a foreign page can send it.
func decode(r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &problem{Status: http.StatusUnsupportedMediaType, Reason: service.ReasonInvalidRequest, Message: "the body must be application/json"}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		// A second value, or an end of the body that is none.
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.Join(errors.New("there is more than one JSON value"), more)
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &problem{Status: http.StatusRequestEntityTooLarge, Reason: service.ReasonInvalidRequest, Message: "the body is too large"}
	case err != nil:
		return &problem{Status: http.StatusBadRequest, Reason: service.ReasonInvalidRequest, Message: "the body is not the JSON of this call"}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of this package that has no JSON form
	}
	setHeaders(w.Header())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // The caller may have gone.
}
