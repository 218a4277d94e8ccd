package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// request is the request id of a command, and the flags that say it.
type request struct {
	flags *pflag.FlagSet
	id    string
	// since is the log index known before the first try, if one is known.
	since uint64
	known bool
	// sent says that a try may have counted, maybe one of an earlier run.
	sent bool
}

// newRequest adds the flags of the commands that take a request id.
func newRequest(f *pflag.FlagSet) *request {
	r := &request{flags: f}
	f.StringVar(&r.id, "request-id", "",
		"the call counts once per request id, however often it is repeated; 1 to 64 bytes; random unless given")
	f.Uint64Var(&r.since, "retry-since", 0,
		"on a retry: the newest log index seen before the first try; refuses the retry if the first try may have been forgotten")
	return r
}

// given says whether the caller said something of the request id.
func (r *request) given() bool {
	return r.flags.Changed("request-id") || r.flags.Changed("retry-since")
}

// check checks the flags. Without an id of the caller it takes a random one.
func (r *request) check() error {
	if r.flags.Changed("request-id") && (r.id == "" || len(r.id) > 64 || !utf8.ValidString(r.id)) {
		return usagef("--request-id must have 1 to 64 bytes of UTF-8, not %.100q", r.id)
	}
	if r.flags.Changed("retry-since") {
		if r.id == "" {
			return usagef("--retry-since needs the --request-id of the first try")
		}
		r.known, r.sent = true, true
	}
	r.id = cmp.Or(r.id, "cli-"+rand.Text())
	return nil
}

// look notes what the log had reached before the first try that may count: a node that refuses
// one because it has just started knows an old index. newest is what is known of other nodes. A
// failure is no failure of the call: repeats then just carry no index.
func (r *request) look(ctx context.Context, conn grpc.ClientConnInterface, newest uint64) {
	if r.sent {
		return
	}
	res, err := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	r.since = max(r.since, newest, res.GetAppliedIndex())
	r.known = r.known || err == nil || newest > 0
}

// next returns the request id for the next attempt.
func (r *request) next() *idnodev1.RequestId {
	id := &idnodev1.RequestId{Id: r.id}
	if r.sent && r.known {
		id.RetrySince = proto.Uint64(r.since)
	}
	return id
}

// again returns the flags that repeat the request safely.
func (r *request) again() string {
	text := "--request-id " + r.id
	if r.known {
		text += " --retry-since " + strconv.FormatUint(r.since, 10)
	}
	return text
}
