// Package webpage is the page at / on a node's HTTP port, for people: the cluster, the
// counters, claims, rates, the node's own etags, and a form that makes ids.
//
// It owns the files of the page, which are embedded in the program and refer to
// nothing outside of it, the headers that bind a browser to them, and the calls
// below /page/api/ that the page makes. Those calls are internal to the page:
// they change with it, in the same program, and are no public API. Each of them is
// a use case of package service, with the rights of its caller.
//
// A change is a POST with a body of JSON, which a page of another origin cannot
// send; the HTTP server refuses those besides (see package
// httpapi), and this package refuses host names that are not the cluster's.
package webpage
