// Package webpage is the page at / on a node's HTTP port, for people.
//
// It owns the files of the page, which are embedded in the program and refer to nothing outside of
// it, the headers that bind a browser to them, and the calls below /page/api/. Those have what the
// public API has not, and are internal to the page; all else the page asks of that API, on the same
// port (see package jsonapi). The HTTP server refuses what another origin sends (see package
// httpapi), and this package host names that are not the cluster's.
package webpage
