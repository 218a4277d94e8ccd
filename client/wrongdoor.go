package client

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// noise are gRPC's messages about bytes that are not HTTP/2, or not TLS. gRPC has no type for
// them: if a later version changes them, calls fail when their time is over.
var noise = []string{
	"looked like an HTTP/1.1 header",
	"first record does not look like a TLS handshake",
	"tls: no application protocol",
}

// wrongDoor reports whether a connection failed because the port is not a node's gRPC port,
// for example its HTTP port.
func wrongDoor(cause error) bool {
	s, ok := status.FromError(cause)
	if !ok || s.Code() == codes.Unimplemented {
		return ok
	}
	for _, text := range noise {
		if strings.Contains(s.Message(), text) {
			return true
		}
	}
	return false
}
