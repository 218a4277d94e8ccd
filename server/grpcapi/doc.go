// Package grpcapi is idnode's gRPC API: thin adapters that translate requests,
// call package service, and translate answers and errors.
//
// It owns what belongs to the protocol: status codes and error details, the
// health and reflection services, the limits of the server, keepalive, recovery
// from panics, and the log of requests. It decides nothing about ids.
package grpcapi
