package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/pause"
)

// clusterClient is one command's way to the cluster. It is used by one goroutine.
type clusterClient struct {
	connection
	output string // of --output
	// context is the saved connection that was taken; empty for none. told says that it was named.
	context  string
	told     bool
	database string
	// consistency is that of reads.
	consistency idnodev1.Consistency
	timeout     time.Duration
	// verbose lists what each endpoint said when a call fails.
	verbose bool
	// anyCluster says that the command is about a node, of whichever cluster.
	anyCluster bool
	// newest is the newest log index that an endpoint told before the first call.
	newest uint64
	// tls is nil for plain connections.
	tls    *tls.Config
	out    *printer
	stderr io.Writer
	// conns has the connections made so far, by endpoint.
	conns map[string]*grpc.ClientConn
}

func (s *clusterClient) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// What may be done about a call whose answer was lost: repeatable calls may be sent again after any
// outcome of the first try, onceOnly calls only if nothing can have happened.
const repeatable, onceOnly = true, false

// callError is a call that failed at every endpoint it was tried at.
type callError struct {
	// err says most about why.
	err     error
	tried   []endpointError
	verbose bool
	// unknown says that the call may have changed something.
	unknown bool
	// again says how the call is repeated safely; empty if it cannot be.
	again string
}

type endpointError struct {
	endpoint string
	err      error
}

// failedAt records an attempt. Of two errors that say as much, the later counts.
func (e *callError) failedAt(endpoint string, err error) {
	e.tried = append(e.tried, endpointError{endpoint, err})
	if e.err == nil || telling(err) >= telling(e.err) {
		e.err = err
	}
}

// telling ranks how much an error says about the cluster: a node's error about the cluster is more than
// its error about itself, and that is more than that an endpoint is no node, or is not there.
func telling(err error) int {
	switch reason := reasonOf(err); {
	case effectOf(err) == effectRefused:
		return 5
	case reason == "STARTING", reason == "STOPPING", reason == reasonOtherCluster:
		return 3
	case reason != "":
		return 4
	case is[*unreachableError](err):
		return 0
	case isNoGRPC(err):
		return 1
	default:
		return 2
	}
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

func callErrorIn(err error) *callError {
	failed, _ := errors.AsType[*callError](err)
	return failed
}

// attempt is one try of a call at one endpoint.
type attempt = func(ctx context.Context, conn grpc.ClientConnInterface) error

// sending is how the calls of a service's client are sent: ask, keyed, change, or what once returns.
type sending func(ctx context.Context, call attempt) error

// Invoke implements grpc.ClientConnInterface. A request that cannot be encoded is refused here:
// gRPC's own error leaves open whether it was sent.
func (send sending) Invoke(ctx context.Context, method string, req, res any, opts ...grpc.CallOption) error {
	if _, err := proto.Marshal(req.(proto.Message)); err != nil {
		return usagef("INVALID_NAME: a text of this call is not UTF-8")
	}
	return send(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, method, req, res, opts...)
	})
}

// NewStream implements grpc.ClientConnInterface. A stream cannot be sent again.
func (sending) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

// The clients of the services, by how their calls are sent.
func idsVia(send sending) idnodev1.IdsServiceClient { return idnodev1.NewIdsServiceClient(send) }

func clusterVia(send sending) idnodev1.ClusterServiceClient {
	return idnodev1.NewClusterServiceClient(send)
}

func seriesVia(send sending) idnodev1.SeriesServiceClient {
	return idnodev1.NewSeriesServiceClient(send)
}

func workersVia(send sending) idnodev1.SnowflakeServiceClient {
	return idnodev1.NewSnowflakeServiceClient(send)
}

// ask sends a call that changes nothing, or of which a repeat only skips a number.
func (s *clusterClient) ask(ctx context.Context, call attempt) error {
	return changedNothing(s.try(ctx, repeatable, call))
}

func (s *clusterClient) askUntilAnswered(ctx context.Context, call attempt) error {
	return changedNothing(s.untilAnswered(ctx, call))
}

// changedNothing returns the error of a call whose outcome is known, however it failed.
func changedNothing(err error) error {
	if failed := callErrorIn(err); failed != nil {
		failed.unknown = false
	}
	return err
}

// keyed sends a call that changes the cluster, and whose repetition changes nothing more, because
// the request names its subject, such as a document's key.
func (s *clusterClient) keyed(ctx context.Context, call attempt) error {
	err := s.try(ctx, repeatable, call)
	if failed := callErrorIn(err); failed != nil {
		failed.again = "repeat the same command: it counts once"
	}
	return err
}

// change sends a call that changes the cluster and has no request id, so it
// goes to the next endpoint only if nothing can have happened.
func (s *clusterClient) change(ctx context.Context, call attempt) error {
	s.nameContext()
	return s.try(ctx, onceOnly, call)
}

// nameContext says once where a change goes that no flag says.
func (s *clusterClient) nameContext() {
	if s.context != "" && !s.told {
		s.told = true
		fmt.Fprintf(s.stderr, "idnode: in context %s: %s\n", s.context, strings.Join(s.Endpoints, ", "))
	}
}

// confirm asks before an irreversible change of the cluster, and names the cluster.
func (s *clusterClient) confirm(ctx context.Context, sure *confirmation, question string) error {
	s.nameContext()
	if sure.person && !sure.yes {
		res, err := clusterOf(ctx, s)
		if err != nil {
			return err
		}
		question += fmt.Sprintf(" This is cluster %s, by its node %s.", cmp.Or(res.GetClusterId(), "without an id"), res.GetSelf().GetTag())
	}
	return sure.ask(question)
}

// once returns how a call is sent that counts once however often that is, because of its request id,
// which it puts into id before each attempt. Every later attempt says what log index was known before
// the first, so that a node which no longer remembers the first refuses the repeat.
func (s *clusterClient) once(r *request, id **idnodev1.RequestId) sending {
	return func(ctx context.Context, call attempt) error {
		if err := r.check(); err != nil {
			return err
		}
		err := s.try(ctx, repeatable, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			r.look(ctx, conn, s.newest)
			*id = r.next()
			err := call(ctx, conn)
			r.sent = r.sent || err != nil && effectOf(err) == effectUnknown
			return err
		})
		if failed := callErrorIn(err); failed != nil {
			failed.again = "repeat the same command with " + r.again() + " and it counts once"
		}
		return err
	}
}

// try calls each endpoint in order until one gives a final answer. The timeout covers all of
// them. An endpoint that may have done something is followed by the next only if it may be repeated.
func (s *clusterClient) try(ctx context.Context, mayRepeat bool, call attempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.settle(ctx); err != nil {
		return err
	}
	failed := &callError{verbose: s.verbose}
	for i, endpoint := range s.Endpoints {
		err := s.tryOne(ctx, endpoint, len(s.Endpoints)-i, mayRepeat, call)
		if err == nil {
			return nil
		}
		failed.failedAt(endpoint, err)
		effect := effectOf(err)
		failed.unknown = failed.unknown || effect == effectUnknown
		if effect == effectRefused || ctx.Err() != nil || effect == effectUnknown && !mayRepeat {
			return failed
		}
	}
	return failed
}

const (
	answerFor   = time.Minute
	answerPause = 200 * time.Millisecond
)

// untilAnswered makes a call as keyed does until it is answered, for at most a minute: long work
// must not end because a leader did.
func (s *clusterClient) untilAnswered(ctx context.Context, call attempt) error {
	deadline := time.Now().Add(answerFor)
	for {
		err := s.keyed(ctx, call)
		if err == nil || !mayPass(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		pause.For(ctx, answerPause)
	}
}

// mayPass says whether the same call may do better in a moment.
func mayPass(err error) bool {
	elsewhere := isNoGRPC(err) || reasonOf(err) == reasonOtherCluster
	return effectOf(err) != effectRefused && !elsewhere || exitCode(err) == exitUnavailable || reasonOf(err) == "OVERLOADED"
}

// tryOne makes one attempt. With left endpoints still to go it may use that share of the
// remaining time; a call that must not be repeated gets all of it once it was sent.
func (s *clusterClient) tryOne(ctx context.Context, endpoint string, left int, mayRepeat bool, call attempt) error {
	deadline, _ := ctx.Deadline() // It is try's.
	share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	conn, err := s.connect(share, endpoint)
	if err != nil {
		return err
	}
	if !mayRepeat {
		share = ctx
	}
	return call(share, conn)
}

// effect is what a failed attempt may have done.
type effect uint8

const (
	// effectNone means that certainly nothing happened, and another endpoint may do better.
	effectNone effect = iota
	// effectUnknown means that it may have happened.
	effectUnknown
	// effectRefused means that the cluster decided against it.
	effectRefused
)

// effectOf classifies a failed attempt. An UNAVAILABLE without a reason comes
// from gRPC itself, as from a connection lost with the call in flight, and so
// does a RESOURCE_EXHAUSTED, as for an answer that is too large to be taken.
func effectOf(err error) effect {
	if is[*unreachableError](err) {
		return effectNone
	}
	reason := reasonOf(err)
	switch code := codeOf(err); {
	case reason == reasonUnknown, code == codes.DeadlineExceeded, code == codes.Canceled:
		return effectUnknown
	case code == codes.Unavailable && reason != "", reason == reasonOtherCluster, isNoGRPC(err):
		return effectNone
	case code == codes.Unavailable, code == codes.Internal, code == codes.Unknown,
		code == codes.ResourceExhausted && reason == "":
		return effectUnknown
	default:
		return effectRefused
	}
}
