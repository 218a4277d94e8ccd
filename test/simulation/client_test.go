package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// client makes one call after the other, on nodes it draws.
type client struct {
	world  *world
	number int
	random *rand.Rand
	port   *port
	conns  map[string]*grpc.ClientConn
	ranges []heldRange
	// given are ranges that were given back.
	given []heldRange
	own   owned
	// requests counts the request ids; last is the newest one.
	requests int
	last     lastRequest
	// seen is the newest log index of any answer.
	seen uint64
}

// lastRequest is a request id, and what its caller had seen before its first try.
type lastRequest struct {
	id    *idnodev1.RequestId
	since uint64
}

// heldRange is a HiLo range with numbers left.
type heldRange struct {
	database        string
	name, tag       string
	low, high, last int64
	token           string
}

func clientHost(number int) string { return fmt.Sprintf("client-%d", number) }

func isClient(host string) bool { return strings.HasPrefix(host, "client-") }

func newClient(w *world, number int) *client {
	return &client{
		world: w, number: number, random: w.plan.stream(300 + uint64(number)), own: newOwned(number, 0),
		port: w.network.port(clientHost(number)), conns: map[string]*grpc.ClientConn{},
	}
}

// run makes calls until ctx ends.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.step(ctx)
		sleep(ctx, time.Duration(c.random.Int64N(int64(c.world.plan.pause))))
	}
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close() // There is nothing to save.
	}
}

func (c *client) conn(s *server) *grpc.ClientConn {
	address := s.address() + grpcPort
	if conn := c.conns[address]; conn != nil {
		return conn
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return c.port.DialContext(ctx, address) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
	)
	if err != nil {
		panic(err) // The options are at fault.
	}
	c.conns[address] = conn
	return conn
}

func (c *client) ids(s *server) idnodev1.IdsServiceClient {
	return idnodev1.NewIdsServiceClient(c.conn(s))
}

func (c *client) cluster(s *server) idnodev1.ClusterServiceClient {
	return idnodev1.NewClusterServiceClient(c.conn(s))
}

// call is what a client asks for: it fills in the answer.
type call func(ctx context.Context, s *server, op *history.Op) error

// once makes one call on a node, and records it. It returns the recorded
// operation.
func (c *client) once(ctx context.Context, s *server, op history.Op, do call) history.Op {
	ctx, cancel := context.WithTimeout(ctx, c.answerLimit())
	defer cancel()
	return c.onceWithin(ctx, s, op, do)
}

// onceWithin makes one call that ends with ctx.
func (c *client) onceWithin(ctx context.Context, s *server, op history.Op, do call) history.Op {
	op.Client, op.Node = int64(c.number), s.tag()
	op.Call = c.world.history.now()
	err := do(ctx, s, &op)
	op.Outcome, op.Code = outcomeOf(err)
	c.world.history.add(op)
	return op
}

// answerLimit is how long a client waits for an answer.
func (c *client) answerLimit() time.Duration {
	return pick(c.random, 30*time.Millisecond, time.Second, 3*time.Second, 6*time.Second)
}

// outcomeOf says what an error means: only what the product itself says is
// certain.
func outcomeOf(err error) (history.Outcome, string) {
	if err == nil {
		return history.OK, ""
	}
	st := status.Convert(err)
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		switch {
		case !ok || info.GetDomain() != "idnode":
		case info.GetReason() == "OUTCOME_UNKNOWN" || st.Code() == codes.Internal || st.Code() == codes.DataLoss:
			return history.Unknown, info.GetReason()
		default:
			return history.Failed, info.GetReason()
		}
	}
	return history.Unknown, st.Code().String()
}

// often makes a call that carries a request id, on one node after the other,
// until its outcome is known, its time is over, or, now and then, once more
// than it needs to.
func (c *client) often(ctx context.Context, op history.Op, do call) history.Op {
	var answered history.Op
	for try := range 1 + c.random.IntN(5) {
		if try == 1 {
			c.retry()
		}
		got := c.once(ctx, pick(c.random, c.world.machines()...), op, do)
		if got.Outcome == history.OK {
			answered = got
			if c.random.IntN(6) != 0 {
				break
			}
		}
		sleep(ctx, time.Duration(c.random.Int64N(int64(300*time.Millisecond))))
		if ctx.Err() != nil {
			break
		}
	}
	return answered
}

// request draws a request id, or nil for a call that carries none.
func (c *client) request(op *history.Op) *idnodev1.RequestId {
	if c.random.IntN(2) == 0 {
		return nil
	}
	c.requests++
	op.Request = fmt.Sprintf("%d-%d", c.number, c.requests)
	c.last = lastRequest{&idnodev1.RequestId{Id: op.Request}, c.seen}
	return c.last.id
}

// retry makes a retry of the newest request id. One must say so if the window of
// request ids is small, and may say so otherwise.
func (c *client) retry() {
	if c.world.plan.window > 0 || c.random.IntN(2) == 0 {
		c.last.id.RetrySince = &c.last.since
	}
}

// saw records the log index of an answer, which the model judges.
func (c *client) saw(answer interface{ GetLogIndex() uint64 }) {
	c.seen = max(c.seen, answer.GetLogIndex())
	var values []history.Block
	if next, ok := answer.(interface {
		GetBlocks() []*idnodev1.ValueBlock
	}); ok {
		values = blocks(next.GetBlocks())
	}
	c.world.tracer.answered(clientHost(c.number), answer.GetLogIndex(), values)
}

// issue makes a call once, or often if it has a request id.
func (c *client) issue(ctx context.Context, op history.Op, do call) history.Op {
	if op.Request != "" {
		return c.often(ctx, op, do)
	}
	return c.once(ctx, pick(c.random, c.world.machines()...), op, do)
}
