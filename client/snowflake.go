package client

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/client/snowflake/generator"
)

// Snowflake is a handle that makes the 64-bit ids of a pool, most of them without a call. Its
// worker has a window of time, which no other worker of its number overlaps, so no id comes twice.
// It is safe for concurrent use, and meant to be shared.
//
// A pool is defined with the command line, 'idnode snowflake define'.
type Snowflake struct {
	client *Client
	key    sourceKey
	ids    *generator.Generator
	// err is why there are no ids; nil if there are.
	err error
}

// Snowflake returns the handle of a pool. The first call makes it, and later calls share it. It makes
// no network call. An invalid name is the error of the handle's methods.
//
// Client.Close closes the handle, so that its worker is free.
func (c *Client) Snowflake(pool string, opts ...Option) *Snowflake {
	o := c.options(opts, 0)
	if o.err != nil {
		return &Snowflake{err: o.err}
	}
	if err := docid.ValidateTag(pool, docid.DefaultSeparator); err != nil {
		return &Snowflake{err: invalid(err)}
	}
	key := sourceKey{database: o.database, name: docid.Fold(pool)}
	h, err := c.handle(key, func() (handle, error) {
		// The client's own bound ends first, because its error says more.
		ids := generator.New(&workerSource{client: c, key: key}, c.cfg.Timeout+time.Second)
		return &Snowflake{client: c, key: key, ids: ids}, nil
	})
	if err != nil {
		return &Snowflake{err: err}
	}
	return h.(*Snowflake)
}

// Next makes an id. It waits for a lease, for the begin of its window if the clock is before it, and
// where the ids of the times up to now are used up. After an error the next call tries again.
func (s *Snowflake) Next(ctx context.Context) (int64, error) {
	if s.err != nil {
		return 0, s.err
	}
	id, err := s.ids.Next(ctx)
	if err != nil {
		return 0, handleError(ctx, err)
	}
	return id, nil
}

// NextN makes n ids, 1 to 10,000, which rise. With an error it returns the ids made before, which
// belong to the caller.
func (s *Snowflake) NextN(ctx context.Context, n int) ([]int64, error) {
	if s.err != nil {
		return nil, s.err
	}
	ids, err := s.ids.NextN(ctx, n)
	return ids, handleError(ctx, err)
}

// SnowflakeParts are the parts of an id.
type SnowflakeParts struct {
	// Time is when the unit of the id's time begins.
	Time time.Time
	// Worker is the number of the worker, and Sequence that of the id within the unit.
	Worker   int
	Sequence int64
}

// Parse returns the parts of an id of this pool. It asks for the pool's layout if no id was made
// yet.
func (s *Snowflake) Parse(ctx context.Context, id int64) (SnowflakeParts, error) {
	if s.err != nil {
		return SnowflakeParts{}, s.err
	}
	layout, known := s.ids.Layout()
	if !known {
		var err error
		if layout, err = s.layout(ctx); err != nil {
			return SnowflakeParts{}, err
		}
	}
	units, number, sequence := layout.Split(id)
	return SnowflakeParts{Time: time.UnixMilli(layout.UnixMilli(units)), Worker: number, Sequence: sequence}, nil
}

// layout asks for the layout of the pool.
func (s *Snowflake) layout(ctx context.Context) (snowflake.Layout, error) {
	req := &idnodev1.ListPoolsRequest{Database: s.key.database, Prefix: s.key.name, PageSize: 1}
	r, err := invoke(ctx, s.client, s.client.options(nil, 0), reads, (*api).ListPools, req)
	if err != nil {
		return snowflake.Layout{}, err
	}
	if len(r.GetPools()) == 0 || r.GetPools()[0].GetName() != s.key.name {
		return snowflake.Layout{}, &Error{Code: codes.NotFound, Reason: "POOL_NOT_FOUND", Field: "pool", Message: "there is no such pool"}
	}
	return layoutOf(r.GetPools()[0].GetLayout()), nil
}

// Close frees the worker, within ctx and about Config.Timeout, and fails all later calls with
// ErrClosed. Client.Snowflake then makes another handle. An error means that the worker is another's
// only when its window ends.
func (s *Snowflake) Close(ctx context.Context) error {
	if s.err != nil {
		return nil
	}
	s.client.forget(s.key, s)
	return handleError(ctx, s.ids.Close(ctx))
}

// workerSource is a generator's Source.
type workerSource struct {
	client *Client
	key    sourceKey
}

// Acquire implements generator.Source.
func (s *workerSource) Acquire(ctx context.Context, now time.Time) (generator.Lease, error) {
	o := s.client.options(nil, hasRequestID)
	req := &idnodev1.AcquireWorkerRequest{
		Database: s.key.database, Pool: s.key.name, Holder: s.client.cfg.Label, Now: timestamppb.New(now), RequestId: o.newRequestID(),
	}
	r, err := invoke(ctx, s.client, o, counts, (*api).AcquireWorker, req)
	if err != nil {
		return generator.Lease{}, err
	}
	if r.GetToken() == "" {
		return generator.Lease{}, malformed("a lease has no token")
	}
	return generator.Lease{
		Layout: layoutOf(r.GetLayout()), Worker: int(r.GetWorker()), Token: r.GetToken(),
		From: r.GetFrom(), Until: r.GetUntil(),
	}, nil
}

// layoutOf returns a layout of the API.
func layoutOf(l *idnodev1.PoolLayout) snowflake.Layout {
	return snowflake.Layout{
		Epoch: l.GetEpoch().AsTime().UnixMilli(), Unit: max(l.GetUnit().AsDuration().Milliseconds(), 1),
		TimeBits: int(l.GetTimeBits()), WorkerBits: int(l.GetWorkerBits()), SequenceBits: int(l.GetSequenceBits()),
	}
}

// Renew implements generator.Source.
func (s *workerSource) Renew(ctx context.Context, l generator.Lease, now time.Time) (int64, error) {
	req := &idnodev1.RenewWorkerRequest{
		Database: s.key.database, Pool: s.key.name, Worker: int32(l.Worker), Token: l.Token,
		Now: timestamppb.New(now),
	}
	r, err := invoke(ctx, s.client, s.client.options(nil, 0), changes, (*api).RenewWorker, req)
	return r.GetUntil(), err
}

// Release implements generator.Source.
func (s *workerSource) Release(ctx context.Context, l generator.Lease, next int64) error {
	req := &idnodev1.ReleaseWorkerRequest{
		Database: s.key.database, Pool: s.key.name, Worker: int32(l.Worker), Token: l.Token, Next: &next,
	}
	_, err := invoke(ctx, s.client, s.client.options(nil, 0), changes, (*api).ReleaseWorker, req)
	return err
}
