package main

import (
	"context"
	"crypto/rand"
	"strconv"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/idnodev1"
)

// request is the request id of a command; nil means no request id.
type request struct {
	id string
	// since is the log index known before the first try; nil if it is not.
	since *uint64
	// looked says that since needs no looking up; sent that a try was made, maybe in an earlier run.
	looked, sent bool
}

// newRequest returns a request with a random id, or with the caller's. since is the caller's own
// --retry-since, nil for a first try.
func newRequest(id string, since *uint64) *request {
	if id == "" {
		id = "cli-" + rand.Text()
	}
	return &request{id: id, since: since, looked: since != nil, sent: since != nil}
}

// look notes what the node's log had reached before the first try. A failure
// is no failure of the call: repeats then just carry no index.
func (r *request) look(ctx context.Context, conn grpc.ClientConnInterface) {
	if r == nil || r.looked {
		return
	}
	r.looked = true
	res, err := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err == nil {
		index := res.GetAppliedIndex()
		r.since = &index
	}
}

// next returns the request id for the next attempt; nil for a call without.
func (r *request) next() *idnodev1.RequestId {
	if r == nil {
		return nil
	}
	id := &idnodev1.RequestId{Id: r.id}
	if r.sent {
		id.RetrySince = r.since
	}
	r.sent = true
	return id
}

// flags returns the flags that repeat the request safely.
func (r *request) flags() string {
	if r == nil {
		return ""
	}
	text := "--request-id " + r.id
	if r.since != nil {
		text += " --retry-since " + strconv.FormatUint(*r.since, 10)
	}
	return text
}
