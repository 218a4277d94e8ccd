// Package httpapi is idnode's HTTP API: the calls that RavenDB's client libraries make for HiLo
// ranges and identities, so that they work against idnode without a change.
//
// It owns what belongs to the protocol: paths, parameters, status codes and RavenDB's error bodies,
// the limits of the server, recovery from panics, and the log of requests. It decides nothing about
// ids.
package httpapi
