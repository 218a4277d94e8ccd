// Package grpcapi is idnode's gRPC API: it registers the use cases of package service,
// which take the API's messages, and translates their errors.
//
// It owns what belongs to the protocol: status codes and error details, the
// health and reflection services, the limits of the server, keepalive, recovery
// from panics, and the log of requests. It decides nothing about ids.
package grpcapi
