package httpapi

import (
	"net/http"
	"strings"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/server/hostcheck"
	"github.com/idnode/idnode/server/service"
)

// Parts of paths, and names of parameters, that occur more than once.
const (
	databases     = "/databases/{db}"
	nextRangePath = "/hilo/next"
	paramTag      = "tag"
	paramName     = "name"
)

type api struct {
	service *service.Service
	// scheme is that of every node's HTTP port: http or https.
	scheme string
	// refused reports each call that did not come to the service.
	refused func(reason string, calls int)
	// extend gives an answer that is long more time to be read.
	extend func(http.ResponseWriter)
}

// call answers one call: with a body, or with an error before anything is written.
type call func(w http.ResponseWriter, r *http.Request, p *params) error

type route struct {
	method, path string
	call         call
}

func (a *api) routes() []route {
	return []route{
		{http.MethodGet, databases + nextRangePath, a.nextRange},
		{http.MethodPut, databases + "/hilo/return", a.returnRange},
		{http.MethodPost, databases + "/identity/next", a.nextIdentity},
		{http.MethodPost, databases + "/identity/seed", a.seedIdentity},
		{http.MethodGet, databases + "/debug/identities", a.listIdentities},
		{http.MethodGet, databases + "/docs", a.hiloDocument},
		{http.MethodGet, databases + "/configuration/client", a.clientConfiguration},
		{http.MethodGet, databases + "/stats", a.statistics},
		{http.MethodGet, databases + "/healthcheck", a.healthCheck},
		{http.MethodGet, "/topology", a.databaseTopology},
		{http.MethodGet, "/cluster/topology", a.clusterTopology},
		{http.MethodGet, "/cluster/node-info", a.nodeInfo},
		{http.MethodGet, "/build/version", a.buildVersion},
		{http.MethodPut, "/admin/databases", createDatabase},
	}
}

func (a *api) register(mux *http.ServeMux) {
	for _, route := range a.routes() {
		mux.Handle(route.path, a.handler(route))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// No path of a call needs an escape that RawPath would hold.
		if folded := foldPath(r.URL.Path); folded != r.URL.Path && r.URL.RawPath == "" {
			inner := withPath(r, folded)
			mux.ServeHTTP(w, inner)
			r.Pattern = inner.Pattern
			return
		}
		noRoute(w, r)
	})
}

// noRoute answers what is no call, by its path or by its method. It is what
// RavenDB answers: clients look for the name of the exception to see that a server
// has a call not yet, and some take a 404 for an answer that is empty.
func noRoute(w http.ResponseWriter, r *http.Request) {
	if ofDocuments(foldPath(r.URL.Path)) {
		writeFailure(w, r, noDocuments("it answers RavenDB's calls for ids alone"))
		return
	}
	status := http.StatusBadRequest
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		status = http.StatusNotFound // gRPC's clients take it for "no such call": they have the wrong port.
	}
	writeFailure(w, r, failure{
		status: status, exception: routeNotFoundException,
		message: "There is no handler for path: " + r.Method + " " + targetOf(r),
	})
}

// handler checks what all calls have in common. The method is compared here and
// not by the mux, to which a HEAD is a GET: it would take a range unseen.
func (a *api) handler(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// It can be of a foreign site's page, and its origin does not show that.
		if err := hostcheck.Check(r, a.service.CheckHost); err != nil {
			a.refuse(w, r, err)
			return
		}
		if r.Method != route.method {
			wrongMethod(w, r, route)
			return
		}
		a.hintTopology(w, r)
		p := parseParams(r.URL.RawQuery, r.Header.Values(service.IdempotencyKeyHeader))
		if p.err = checkDatabase(r.PathValue("db")); p.err != nil {
			a.refuse(w, r, p.err)
			return
		}
		switch err := route.call(w, r, p); {
		case err == nil:
		case p.err != nil:
			a.refuse(w, r, err)
		default: // The service tells of those that are its own.
			writeFailure(w, r, failureOf(err))
		}
	})
}

// refuse answers a call that does not come to the service.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := failureOf(err)
	a.refused(f.reason, 1)
	writeFailure(w, r, f)
}

func wrongMethod(w http.ResponseWriter, r *http.Request, route route) {
	noRoute(w, r)
}

// checkDatabase checks the name of a database in any case; "" is one.
func checkDatabase(name string) error {
	if _, err := docid.ParseDatabase(name); err != nil {
		return service.BadForm(err)
	}
	return nil
}

func withPath(r *http.Request, path string) *http.Request {
	copied, u := *r, *r.URL
	u.Path, u.RawPath = path, "" // What was escaped in it is part of no path there is.
	copied.URL = &u
	return &copied
}

// withoutDoubleSlash returns a request whose path begins with one slash: clients
// that are given a URL with a slash at its end send two, and would lose the
// method of their request in a redirection.
func withoutDoubleSlash(r *http.Request) *http.Request {
	if !strings.HasPrefix(r.URL.Path, "//") {
		return r
	}
	return withPath(r, "/"+strings.TrimLeft(r.URL.Path, "/"))
}

// foldPath returns a path in lower case but for the name of a database, as routes
// are written: paths of calls have no case, as with RavenDB.
func foldPath(path string) string {
	const prefix = "/databases/"
	if len(path) < len(prefix) || !strings.EqualFold(path[:len(prefix)], prefix) {
		return strings.ToLower(path)
	}
	name, rest, found := strings.Cut(path[len(prefix):], "/")
	if !found {
		return prefix + name
	}
	return prefix + name + "/" + strings.ToLower(rest)
}
