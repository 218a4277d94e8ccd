// Package jsonapi is idnode's public API as JSON over HTTP: each method of the proto files
// that has one request and one answer, as the Connect protocol has them. A call goes
// through the handlers and interceptors of the gRPC server, so that its answers, errors,
// rights and limits are the same.
//
// It owns what belongs to the protocol: paths, headers, timeouts, JSON, and the status
// codes and bodies of errors. It decides nothing about ids.
package jsonapi
