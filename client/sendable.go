package client

import "google.golang.org/protobuf/proto"

// maxRequestBytes bounds a request, far above a node's bound for any call.
const maxRequestBytes = 1 << 20

// sendable refuses a request that cannot be encoded, as one whose text is not UTF-8, or that no
// node would read. In a shared message it would break the stream of all its calls, again at each
// try, and leave its outcome unknown although nothing was sent.
func sendable(req request) error {
	if b, err := proto.Marshal(req); err != nil || len(b) > maxRequestBytes {
		return invalidField("INVALID_REQUEST", "", "a text of the call is not UTF-8, or the call is too large")
	}
	return nil
}
