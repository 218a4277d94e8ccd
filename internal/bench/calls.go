package bench

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
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
		if c.Op == Series {
			return []taker{c.series(client.TakeNumbers)}, end, nil
		}
		return []taker{c.through(client)}, end, nil
	}
	for _, conn := range c.Conns {
		ids := idnodev1.NewIdsServiceClient(conn)
		switch {
		case c.Op == Echo:
			takers = append(takers, echo(healthv1.NewHealthClient(conn)))
		case c.Op == Series:
			takers = append(takers, c.series(idnodev1.NewSeriesServiceClient(conn).TakeNumbers))
		case c.Via == Unary:
			takers = append(takers, c.through(ids))
		default:
			x, err := newExchange(context.WithoutCancel(ctx), ids)
			if err != nil {
				end()
				return nil, nil, err
			}
			ends, takers = append(ends, x.close), append(takers, c.through(x))
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

// through returns the taker of the operation.
func (c Config) through(via calls) taker {
	switch c.Op {
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

// blocks returns blocks of one counter.
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
