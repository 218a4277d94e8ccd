package client

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// noise is what gRPC says of bytes that are no HTTP/2, or no TLS, at all. It has no type for
// them: where a later version says it otherwise, calls fail when their time is over.
var noise = []string{
	"looked like an HTTP/1.1 header",
	"first record does not look like a TLS handshake",
	"tls: no application protocol",
}

// wrongDoor says whether a connection failed because what answers there is no node's gRPC
// API, as a node's port for HTTP.
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
