package httpapi

import (
	"net/http"
	"strings"
)

// createDatabase answers what RavenDB does when the database is there: each is, and applications
// that create theirs when they start take that for success.
func createDatabase(w http.ResponseWriter, r *http.Request, p *params) error {
	name := p.needed(paramName)
	if p.err == nil {
		p.err = checkDatabase(name)
	}
	if p.err != nil {
		return p.err
	}
	writeFailure(w, r, failure{
		status: http.StatusConflict, exception: concurrencyException,
		message: "Database '" + name + "' already exists!",
	})
	return nil
}

func noDocuments(but string) failure {
	return failure{
		status: http.StatusNotImplemented, exception: notSupportedException,
		message: "idnode keeps no documents: " + but,
	}
}

// documentPaths are the paths of RavenDB's HTTP API that have no counterpart, each with what is below
// it: of a server, and of a database.
var documentPaths = map[string]bool{
	"/admin": true, "/certificates": true, "/databases": true, "/debug": true, "/license": true,
	"/operations": true, "/server": true, "/setup": true, "/studio": true, "/studio-tasks": true,
	"admin": true, "attachments": true, "batches": true, "bulk_docs": true, "bulk_insert": true, "changes": true,
	"cmpxchg": true, "collections": true, "compare-exchange": true, "configuration": true, "counters": true,
	"data-archival": true, "docs": true, "etl": true, "expiration": true, "index": true, "indexes": true,
	"metrics": true, "multi_get": true, "operations": true, "queries": true, "rachis": true, "refresh": true,
	"replication": true, "revisions": true, "smuggler": true, "sorters": true, "analyzers": true, "streams": true,
	"studio": true, "studio-tasks": true, "subscriptions": true, "suggestions": true, "tasks": true, "tcp": true,
	"timeseries": true, "transactions": true,
}

// ofDocuments reports whether a path, folded, is one of RavenDB's that idnode lacks.
func ofDocuments(path string) bool {
	const ofDatabase = "/databases/"
	if !strings.HasPrefix(path, ofDatabase) {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		return documentPaths["/"+first]
	}
	_, below, _ := strings.Cut(path[len(ofDatabase):], "/")
	first, _, _ := strings.Cut(below, "/")
	return documentPaths[first]
}
