// Package webpage is the page at / on a node's HTTP port, for people: the cluster, the
// counters, claims, rates, the node's own etags, and a form that makes ids.
//
// It owns the files of the page, which are embedded in the program and refer to
// nothing outside of it, the headers that bind a browser to them, and the calls
// below /page/api/. Those have what the public API has not; all else the page asks of that,
// on the same port (see package jsonapi). They are internal to the page: they change with
// it, in the same program. Each of them is a use case of package service, with the rights of
// its caller.
//
// The HTTP server refuses what another origin sends (see package httpapi), and this package
// refuses host names that are not the cluster's.
package webpage
