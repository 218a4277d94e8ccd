package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/pause"
)

// liveService is the name that idnode's health service answers without looking at anything.
const liveService = "idnode.live"

// takers returns what makes the calls over each connection, and what ends what they share.
func (c Config) takers(ctx context.Context) (takers []taker, end func(), err error) {
	if c.Op == Series {
		if err := c.defineSeries(ctx, c.Conns[0]); err != nil {
			return nil, nil, err
		}
	}
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	if c.Via == ViaClient {
		client := viaClient{c.Client}
		return []taker{c.through(client, client.TakeNumbers)}, end, nil
	}
	for _, conn := range c.Conns {
		ids := idnodev1.NewIdsServiceClient(conn)
		switch {
		case c.Op == Echo:
			takers = append(takers, echo(healthv1.NewHealthClient(conn)))
		case c.Via == Unary:
			takers = append(takers, c.through(ids, idnodev1.NewSeriesServiceClient(conn).TakeNumbers))
		default:
			x, err := newExchange(context.WithoutCancel(ctx), ids)
			if err != nil {
				end()
				return nil, nil, err
			}
			ends, takers = append(ends, x.close), append(takers, c.through(x, nil))
		}
	}
	return takers, end, nil
}

// calls is the part of the API that is measured. A client of the service makes each call by itself.
type calls interface {
	Generate(ctx context.Context, req *idnodev1.GenerateRequest, _ ...grpc.CallOption) (*idnodev1.GenerateResponse, error)
	NextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest, _ ...grpc.CallOption) (*idnodev1.NextIdentityResponse, error)
	NextRange(ctx context.Context, req *idnodev1.NextRangeRequest, _ ...grpc.CallOption) (*idnodev1.NextRangeResponse, error)
}

func (c Config) through(via calls, take takeNumbers) taker {
	switch c.Op {
	case Series:
		return c.series(take)
	case Identity:
		return c.identities(via)
	case Range:
		return c.ranges(via)
	case ServerSide:
		return c.serverSide(via)
	default:
		return c.guids(via)
	}
}

// name returns the name, or tag, of a caller's i-th call, and its number. The
// callers walk through the names at a distance of each other.
func (c Config) name(caller, i int) (string, uint64) {
	n := uint64(caller)*uint64(c.Names)/uint64(c.Callers) + uint64(i)
	n %= uint64(c.Names)
	return fmt.Sprintf("%s%d", c.Prefix, n), n
}

func (c Config) identities(via calls) taker {
	return func(ctx context.Context, caller, i int) ([]block, error) {
		name, number := c.name(caller, i)
		r, err := via.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: c.Database, Name: name, Count: int64(c.Batch)})
		return blocks(number, r.GetBlocks()), err
	}
}

func blocks[B interface {
	GetFirst() int64
	GetLast() int64
}](counter uint64, all []B) []block {
	taken := make([]block, 0, len(all))
	for _, b := range all {
		taken = append(taken, block{counter, b.GetFirst(), b.GetLast()})
	}
	return taken
}

func (c Config) ranges(via calls) taker {
	return func(ctx context.Context, caller, i int) ([]block, error) {
		tag, number := c.name(caller, i)
		r, err := via.NextRange(ctx, &idnodev1.NextRangeRequest{Database: c.Database, Tag: tag, Size: int64(c.Batch)})
		return []block{{number, r.GetLow(), r.GetHigh()}}, err
	}
}

func (c Config) serverSide(via calls) taker {
	return func(ctx context.Context, _, _ int) ([]block, error) {
		r, err := via.Generate(ctx, &idnodev1.GenerateRequest{
			Database: c.Database, Template: c.Prefix + "/", Count: int64(c.Batch), BlocksOnly: true,
		})
		// The counter is the node's, whose tag tells it from others.
		var node uint64
		for _, letter := range []byte(r.GetNodeTag()) {
			node = node<<8 | uint64(letter)
		}
		return blocks(math.MaxUint64-node, r.GetBlocks()), err
	}
}

func (c Config) guids(via calls) taker {
	return func(ctx context.Context, _, _ int) ([]block, error) {
		r, err := via.Generate(ctx, &idnodev1.GenerateRequest{Count: int64(c.Batch)})
		if err != nil {
			return nil, err
		}
		taken := make([]block, len(r.GetIds()))
		for i, id := range r.GetIds() {
			if taken[i], err = guidBlock(id); err != nil {
				return nil, err
			}
		}
		return taken, nil
	}
}

func echo(health healthv1.HealthClient) taker {
	return func(ctx context.Context, _, _ int) ([]block, error) {
		_, err := health.Check(ctx, &healthv1.HealthCheckRequest{Service: liveService})
		return nil, err
	}
}

// viaClient makes the calls through idnode's Go client, which routes them to the leader and shares messages.
type viaClient struct{ c *client.Client }

func (v viaClient) Generate(ctx context.Context, req *idnodev1.GenerateRequest, _ ...grpc.CallOption) (*idnodev1.GenerateResponse, error) {
	if req.Template == "" {
		ids, err := v.c.NextN(ctx, "", int(req.Count))
		return &idnodev1.GenerateResponse{Ids: ids}, err
	}
	blocks, err := v.c.NextBlocks(ctx, req.Template, int(req.Count))
	r := &idnodev1.GenerateResponse{}
	for _, b := range blocks {
		// The suffix is "-" and the tag of the node whose counter it is.
		r.NodeTag = b.Suffix
		r.Blocks = append(r.Blocks, &idnodev1.IdBlock{First: b.First, Last: b.Last})
	}
	return r, err
}

func (v viaClient) NextIdentity(
	ctx context.Context, req *idnodev1.NextIdentityRequest, _ ...grpc.CallOption,
) (*idnodev1.NextIdentityResponse, error) {
	values, err := v.c.Identity(req.Name).NextN(ctx, int(req.Count))
	r := &idnodev1.NextIdentityResponse{}
	for _, b := range values {
		r.Blocks = append(r.Blocks, &idnodev1.ValueBlock{First: b.First, Last: b.Last})
	}
	return r, err
}

func (v viaClient) NextRange(
	ctx context.Context, req *idnodev1.NextRangeRequest, _ ...grpc.CallOption,
) (*idnodev1.NextRangeResponse, error) {
	r, err := v.c.NextRange(ctx, req.Tag, client.RangeRequest{Size: req.Size})
	return &idnodev1.NextRangeResponse{Low: r.Low, High: r.High}, err
}

func (v viaClient) TakeNumbers(
	ctx context.Context, req *idnodev1.TakeNumbersRequest, _ ...grpc.CallOption,
) (*idnodev1.TakeNumbersResponse, error) {
	numbers, err := v.c.Series(req.Series).Take(ctx, client.NumberRequest{Keys: req.Keys})
	r := &idnodev1.TakeNumbersResponse{}
	for _, n := range numbers {
		r.Numbers = append(r.Numbers, &idnodev1.SeriesNumber{Number: n.Number})
	}
	return r, err
}

const (
	// defineWithin bounds the wait for the series: a new cluster may have no leader yet.
	defineWithin = 10 * time.Second
	definePause  = 50 * time.Millisecond
)

// defineSeries defines the series that the numbers are taken from.
func (c Config) defineSeries(ctx context.Context, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithTimeout(ctx, defineWithin)
	defer cancel()
	for n := range c.Names {
		req := &idnodev1.DefineSeriesRequest{
			Database: c.Database, Name: fmt.Sprintf("%s%d", c.Prefix, n), Definition: &idnodev1.SeriesDefinition{Format: "{number}"},
		}
		for {
			_, err := idnodev1.NewSeriesServiceClient(conn).DefineSeries(ctx, req)
			if err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable || !pause.For(ctx, definePause) {
				return fmt.Errorf("no series could be defined: %w", err)
			}
		}
	}
	return nil
}

// takeNumbers is the call that is measured, in whichever way it is made.
type takeNumbers func(context.Context, *idnodev1.TakeNumbersRequest, ...grpc.CallOption) (*idnodev1.TakeNumbersResponse, error)

// series takes numbers, each call for unused keys.
func (c Config) series(take takeNumbers) taker {
	return func(ctx context.Context, caller, i int) (taken []block, err error) {
		name, number := c.name(caller, i)
		keys := make([]string, c.Batch)
		for n := range keys {
			keys[n] = fmt.Sprintf("document-%d-%d-%d", caller, i, n)
		}
		r, err := take(ctx, &idnodev1.TakeNumbersRequest{Database: c.Database, Series: name, Keys: keys})
		for _, n := range r.GetNumbers() {
			taken = append(taken, block{number, n.GetNumber(), n.GetNumber()})
		}
		return taken, err
	}
}
