// Package jsonapi is idnode's public API as JSON over HTTP: each method of the proto files that has
// one request and one answer, as the Connect protocol has them. A call goes through the handlers
// and interceptors of the gRPC server, so its answers, errors, rights and limits are the same. The
// package owns what belongs to the protocol, and decides nothing about ids.
package jsonapi
