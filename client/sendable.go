package client

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// maxRequestBytes bounds a request, far above a node's bound for any call.
const maxRequestBytes = 1 << 20

// sendable refuses a request that cannot be encoded, or that no node would read. In a shared
// message it would break the stream of all its calls, again at each try, and leave its
// outcome unknown although nothing was sent.
func sendable(req request) error {
	one, other, known := textsOf(req)
	counts, _ := req.(counted)
	switch {
	case !known: // Such a request has a message of its own.
		if b, err := proto.Marshal(req); err == nil && len(b) <= maxRequestBytes {
			return nil
		}
	case isText(one) && isText(other) && isText(req.GetDatabase()) && isText(counts.GetRequestId().GetId()):
		return nil
	}
	return invalidField("INVALID_REQUEST", "", "a text of the call is not UTF-8, or the call is too large")
}

func isText(s string) bool { return len(s) <= maxRequestBytes/4 && utf8.ValidString(s) }

// textsOf returns the texts of a request that shares a message, other than its database and
// request id; false for any other request.
func textsOf(req request) (one, other string, ok bool) {
	switch r := req.(type) {
	case *idnodev1.GenerateRequest:
		return r.GetTemplate(), r.GetSeparator(), true
	case *idnodev1.NextIdentityRequest:
		return r.GetName(), r.GetSeparator(), true
	case *idnodev1.SeedIdentityRequest:
		return r.GetName(), "", true
	case *idnodev1.NextRangeRequest: // The label was checked.
		return r.GetTag(), r.GetSeparator(), true
	case *idnodev1.ReturnRangeRequest:
		return r.GetTag(), "", len(r.GetToken()) <= maxRequestBytes/4
	case *idnodev1.ClaimRequest:
		return r.GetId(), r.GetSeparator(), true
	case *idnodev1.ReleaseRequest:
		return r.GetId(), "", true
	default:
		return "", "", false
	}
}
