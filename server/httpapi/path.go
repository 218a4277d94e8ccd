package httpapi

import (
	"net/http"
	"strings"
)

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
