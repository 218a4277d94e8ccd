package bench

import (
	"context"
	"fmt"
	"math"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
)

// liveService is the name that idnode's health service answers without looking
// at anything.
const liveService = "idnode.live"

// takers returns one taker for each caller, and what ends what they share.
func (c Config) takers(ctx context.Context) (takers []taker, end func(), err error) {
	if c.Op == Series {
		if err := c.defineSeries(ctx, c.Conns[0]); err != nil {
			return nil, nil, err
		}
	}
	if c.Via == ViaClient {
		maker := c.through(viaClient{c.Client})
		if c.Op == Series {
			maker = c.series(c.clientNumbers())
		}
		for caller := range c.Callers {
			takers = append(takers, maker(caller))
		}
		return takers, func() {}, nil
	}
	makers := make([]func(caller int) taker, len(c.Conns))
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	for i, conn := range c.Conns {
		ids := idnodev1.NewIdsServiceClient(conn)
		switch {
		case c.Op == Echo:
			makers[i] = c.echo(healthv1.NewHealthClient(conn))
		case c.Op == Series:
			makers[i] = c.series(c.unaryNumbers(conn))
		case c.Via == Unary:
			makers[i] = c.through(unary{ids})
		default:
			x, err := newExchange(context.WithoutCancel(ctx), ids)
			if err != nil {
				end()
				return nil, nil, err
			}
			ends = append(ends, x.close)
			makers[i] = c.through(x)
		}
	}
	for caller := range c.Callers {
		takers = append(takers, makers[caller%len(makers)](caller))
	}
	return takers, end, nil
}

// calls is the part of the API that is measured.
type calls interface {
	Generate(ctx context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error)
	NextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error)
	NextRange(ctx context.Context, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error)
}

// unary makes each call by itself.
type unary struct{ ids idnodev1.IdsServiceClient }

func (u unary) Generate(ctx context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	return u.ids.Generate(ctx, req)
}

func (u unary) NextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	return u.ids.NextIdentity(ctx, req)
}

func (u unary) NextRange(ctx context.Context, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
	return u.ids.NextRange(ctx, req)
}

// through returns what makes the takers of the operation out of calls.
func (c Config) through(via calls) func(caller int) taker {
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

func (c Config) identities(via calls) func(caller int) taker {
	return func(caller int) taker {
		return func(ctx context.Context, i int) ([]block, error) {
			name, number := c.name(caller, i)
			r, err := via.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: c.Database, Name: name, Count: int64(c.Batch)})
			if err != nil {
				return nil, err
			}
			taken := make([]block, 0, len(r.Blocks))
			for _, b := range r.Blocks {
				taken = append(taken, block{number, b.First, b.Last})
			}
			return taken, nil
		}
	}
}

func (c Config) ranges(via calls) func(caller int) taker {
	return func(caller int) taker {
		return func(ctx context.Context, i int) ([]block, error) {
			tag, number := c.name(caller, i)
			r, err := via.NextRange(ctx, &idnodev1.NextRangeRequest{Database: c.Database, Tag: tag, Size: int64(c.Batch)})
			if err != nil {
				return nil, err
			}
			return []block{{number, r.Low, r.High}}, nil
		}
	}
}

func (c Config) serverSide(via calls) func(caller int) taker {
	return func(int) taker {
		return func(ctx context.Context, _ int) ([]block, error) {
			r, err := via.Generate(ctx, &idnodev1.GenerateRequest{
				Database: c.Database, Template: c.Prefix + "/", Count: int64(c.Batch), BlocksOnly: true,
			})
			if err != nil {
				return nil, err
			}
			// The counter is the node's, whose tag tells it from others.
			var node uint64
			for _, letter := range []byte(r.NodeTag) {
				node = node<<8 | uint64(letter)
			}
			taken := make([]block, 0, len(r.Blocks))
			for _, b := range r.Blocks {
				taken = append(taken, block{math.MaxUint64 - node, b.First, b.Last})
			}
			return taken, nil
		}
	}
}

func (c Config) guids(via calls) func(caller int) taker {
	return func(int) taker {
		return func(ctx context.Context, _ int) ([]block, error) {
			r, err := via.Generate(ctx, &idnodev1.GenerateRequest{Count: int64(c.Batch)})
			if err != nil {
				return nil, err
			}
			taken := make([]block, 0, len(r.Ids))
			for _, id := range r.Ids {
				b, err := guidBlock(id)
				if err != nil {
					return nil, err
				}
				taken = append(taken, b)
			}
			return taken, nil
		}
	}
}

func (c Config) echo(health healthv1.HealthClient) func(caller int) taker {
	return func(int) taker {
		return func(ctx context.Context, _ int) ([]block, error) {
			_, err := health.Check(ctx, &healthv1.HealthCheckRequest{Service: liveService})
			return nil, err
		}
	}
}
