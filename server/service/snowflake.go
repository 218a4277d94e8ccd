package service

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake/generator"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// maxOwnWorkers bounds the pools for which a node has a worker of its own.
const maxOwnWorkers = 1024

// ownWorkers are this node's generators. It is safe for concurrent use.
type ownWorkers struct {
	mu     sync.Mutex
	byPool map[poolKey]*ownWorker
}

// of returns the generator of a pool; nil if there are too many.
func (o *ownWorkers) of(pool poolKey, fresh func() *ownWorker) *ownWorker {
	o.mu.Lock()
	defer o.mu.Unlock()
	if own := o.byPool[pool]; own != nil {
		return own
	}
	if len(o.byPool) >= maxOwnWorkers {
		maps.DeleteFunc(o.byPool, func(_ poolKey, own *ownWorker) bool { return own.Passed() })
		if len(o.byPool) >= maxOwnWorkers {
			return nil
		}
	}
	if o.byPool == nil {
		o.byPool = map[poolKey]*ownWorker{}
	}
	own := fresh()
	o.byPool[pool] = own
	return own
}

// ownWorker makes the ids of a pool at this node. Its worker is the node's: the window is renewed in
// the name of the newest caller.
type ownWorker struct {
	*generator.Generator
	*workers
	pool   poolKey
	author atomic.Pointer[string]
}

// NextSnowflakes makes ids of a pool at this node.
func (w *workers) NextSnowflakes(ctx context.Context, req *idnodev1.NextSnowflakesRequest) (*idnodev1.NextSnowflakesResponse, error) {
	return admission.Call(ctx, w.Control, "NextSnowflakes", req, w.nextSnowflakes)
}

func (w *workers) nextSnowflakes(ctx context.Context, req *idnodev1.NextSnowflakesRequest) (*idnodev1.NextSnowflakesResponse, error) {
	pool, err := keyOfPool(req.GetDatabase(), req.GetPool(), "pool")
	if err != nil {
		return nil, err
	}
	count, err := parseCount(int64(req.GetCount()), generator.MaxCount)
	if err != nil {
		return nil, err
	}
	if err := w.Allow(ctx, rights.Ranges, admission.Target{Database: pool.database, Name: pool.name}, count); err != nil {
		return nil, err
	}
	own := w.own.of(pool, func() *ownWorker {
		own := &ownWorker{workers: w, pool: pool}
		own.Generator = generator.New(own, w.timeout)
		return own
	})
	if own == nil {
		return nil, apierror.Exhausted(apierror.ReasonQuota, "this node has workers of too many pools", 0, nil)
	}
	own.author.Store(w.author(ctx))
	ids, err := own.NextN(ctx, int(count))
	return &idnodev1.NextSnowflakesResponse{Ids: ids}, snowflakeError(err)
}

func snowflakeError(err error) error {
	if _, known := errors.AsType[*apierror.Error](err); known || err == nil {
		return err
	}
	if early, ok := errors.AsType[*generator.EarlyError](err); ok {
		return apierror.Unavailable(apierror.ReasonWindowEarly, early.Error(), early.By, err)
	}
	return apierror.Unavailable(apierror.ReasonOverloaded, "the time of the call ended before the layout had so many ids", apierror.RetryBusy,
		err)
}

func (o *ownWorker) Acquire(ctx context.Context, now time.Time) (generator.Lease, error) {
	tag := o.tag.confirmed()
	if tag == "" {
		return generator.Lease{}, apierror.Unavailable(apierror.ReasonStarting, "the cluster has not confirmed this node's tag yet",
			apierror.RetryStarting, nil)
	}
	l, _, err := o.lease(ctx, op.Envelope{Database: o.pool.database}, &raftlogv1.WorkerAcquire{
		Pool: o.pool.name, Holder: "node " + tag, HolderUnixNano: now.UnixNano(), Own: true,
	})
	return l, err
}

// Renew moves the end of the window.
func (o *ownWorker) Renew(ctx context.Context, l generator.Lease, now time.Time) (int64, error) {
	token, err := parseToken(l.Token)
	if err != nil {
		return 0, err
	}
	e := op.Envelope{Database: o.pool.database, Principal: o.author.Load()}
	result, err := o.once(ctx, e, &raftlogv1.WorkerRenew{
		Pool: o.pool.name, Worker: int32(l.Worker), Token: token, HolderUnixNano: now.UnixNano(),
	})
	return result.GetWorkerLease().GetUntil(), err
}

// Release is not called: a node that stops lets its windows pass.
func (o *ownWorker) Release(context.Context, generator.Lease, int64) error { return nil }
