// Package grpcapi is idnode's gRPC API over the use cases of package service. It owns what belongs
// to the protocol: status codes and error details, health and reflection, the limits of the server,
// keepalive, recovery from panics, and the log of requests. It decides nothing about ids.
package grpcapi
