package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/client/snowflake/generator"
	"github.com/idnode/idnode/test/history"
)

// Callers lease the two workers of stamps. The workers of marks are the nodes' own.
const stamps, marks = "stamps", "marks"

// holders are the callers that lease workers.
const holders = 3

// twoWorkers is the layout of stamps. The clock begins in the year 2000.
var twoWorkers = snowflake.Layout{Unit: 1, TimeBits: 44, WorkerBits: 1, SequenceBits: 4}

// definePool defines a pool with the shortest windows that there may be. forget ends all leases.
func (c *client) definePool(ctx context.Context, name string, workerBits int, forget bool) bool {
	got := c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
		func(ctx context.Context, s *server, _ *history.Op) error {
			_, err := c.pools(s).DefinePool(ctx, &idnodev1.DefinePoolRequest{
				Name: name, Window: durationpb.New(10 * time.Second), ForgetLeases: forget, Layout: &idnodev1.PoolLayout{
					Epoch: timestamppb.New(time.UnixMilli(0)), Unit: durationpb.New(time.Millisecond), TimeBits: int32(twoWorkers.TimeBits),
					WorkerBits: int32(workerBits), SequenceBits: int32(twoWorkers.SequenceBits),
				},
			})
			return err
		})
	return got.Outcome == history.OK
}

func (c *client) pools(s *server) idnodev1.SnowflakeServiceClient {
	return idnodev1.NewSnowflakeServiceClient(c.conn(s))
}

// holder is where a generator leases, as a caller whose clock is ahead of the true one. Its
// generator counts by the true one, so all times are moved by that on their way.
type holder struct {
	client *client
	name   string
	ahead  time.Duration
	// turn is held by the one call that is made.
	turn chan struct{}
	// crashed callers do not give their lease back.
	crashed atomic.Bool
	mu      sync.Mutex
	// leases are all there were, by the caller's clock.
	leases []generator.Lease
}

// units is by how many units the holder's clock is ahead.
func (h *holder) units() int64 { return h.ahead.Milliseconds() }

// call makes one call at a time.
func (h *holder) call(make func() history.Op) history.Op {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	return make()
}

func outcomeError(op history.Op) error {
	if op.Outcome == history.OK {
		return nil
	}
	return fmt.Errorf("%s %s", op.Outcome, op.Code)
}

// Acquire implements generator.Source.
func (h *holder) Acquire(ctx context.Context, now time.Time) (l generator.Lease, err error) {
	var token string
	op := h.call(func() history.Op {
		op := history.Op{Kind: history.Lease, Name: stamps}
		id := h.client.request(&op)
		want := pick(h.client.random, 50*time.Millisecond, 200*time.Millisecond, time.Second, 10*time.Second)
		return h.client.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
			r, err := h.client.pools(s).AcquireWorker(ctx, &idnodev1.AcquireWorkerRequest{
				Pool: stamps, Holder: h.name, Window: durationpb.New(want), Now: timestamppb.New(now.Add(h.ahead)), RequestId: id,
			})
			h.client.saw(r)
			op.Result, op.Tag, op.Low, op.High = int64(r.GetWorker()), r.GetToken(), r.GetFrom(), r.GetUntil()-1
			if err == nil {
				token = r.GetToken()
			}
			return err
		})
	})
	if err := outcomeError(op); err != nil {
		return l, err
	}
	l = generator.Lease{
		Layout: twoWorkers, Worker: int(op.Result), Token: token, From: op.Low, Until: op.High + 1,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, l)
	l.From, l.Until = l.From-h.units(), l.Until-h.units()
	return l, nil
}

// Renew implements generator.Source.
func (h *holder) Renew(ctx context.Context, l generator.Lease, now time.Time) (int64, error) {
	op := h.call(func() history.Op {
		return h.client.issue(ctx, history.Op{Kind: history.Renew, Name: stamps, Tag: l.Token},
			func(ctx context.Context, s *server, op *history.Op) error {
				r, err := h.client.pools(s).RenewWorker(ctx, &idnodev1.RenewWorkerRequest{
					Pool: stamps, Worker: int32(l.Worker), Token: l.Token, Window: durationpb.New(300 * time.Millisecond),
					Now: timestamppb.New(now.Add(h.ahead)),
				})
				op.High = r.GetUntil() - 1
				return err
			})
	})
	return op.High + 1 - h.units(), outcomeError(op)
}

// Release implements generator.Source.
func (h *holder) Release(ctx context.Context, l generator.Lease, next int64) error {
	if h.crashed.Load() {
		return errCrashed
	}
	next += h.units()
	return outcomeError(h.call(func() history.Op {
		return h.client.issue(ctx, history.Op{Kind: history.Free, Name: stamps, Tag: l.Token, Last: next - 1},
			func(ctx context.Context, s *server, op *history.Op) error {
				_, err := h.client.pools(s).ReleaseWorker(ctx, &idnodev1.ReleaseWorkerRequest{
					Pool: stamps, Worker: int32(l.Worker), Token: l.Token, Next: proto.Int64(next),
				})
				return err
			})
	}))
}

// made records an id: it is of the newest lease that has its worker, and begins before it.
func (h *holder) made(id int64) {
	id += h.units() << (twoWorkers.WorkerBits + twoWorkers.SequenceBits)
	at, worker, _ := twoWorkers.Split(id)
	op := history.Op{
		Kind: history.Make, Name: stamps, Client: int64(h.client.number), Call: h.client.world.history.now(), Outcome: history.OK,
		Result: int64(worker), Low: at, High: at, Blocks: []history.Block{{First: id, Last: id}}, Tag: "none",
	}
	h.mu.Lock()
	for _, l := range h.leases {
		if l.Worker == worker && l.From <= at {
			op.Tag = l.Token
		}
	}
	h.mu.Unlock()
	h.client.world.history.add(op)
}

// evict takes a worker from whoever has it.
func (c *client) evict(ctx context.Context, worker int32) {
	c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Evict, Name: stamps, Result: int64(worker)},
		func(ctx context.Context, s *server, _ *history.Op) error {
			_, err := c.pools(s).EvictWorker(ctx, &idnodev1.EvictWorkerRequest{Pool: stamps, Worker: proto.Int32(worker)})
			return err
		})
}

// stamp uses one generator after the other until ctx ends, each by several callers at a time, and
// closes it, or leaves it as a caller that crashed.
func (w *world) stamp(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	for ctx.Err() == nil && !c.definePool(ctx, stamps, twoWorkers.WorkerBits, false) {
		sleep(ctx, 50*time.Millisecond)
	}
	for ctx.Err() == nil {
		switch c.random.IntN(60) {
		case 0:
			c.definePool(ctx, stamps, twoWorkers.WorkerBits, true)
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12: // Most find a worker free.
			c.evict(ctx, int32(c.random.IntN(2)))
		}
		h := &holder{client: c, name: fmt.Sprint(number), ahead: c.drawClock(), turn: make(chan struct{}, 1)}
		g, crashes := generator.New(h, generatorTimeout), c.random.IntN(3) == 0
		using, cancel := context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(time.Second))))
		var callers sync.WaitGroup
		for i := range sharers {
			random := w.plan.stream(900 + uint64(number*10+i))
			callers.Go(func() { makeStamps(using, g, h, random) })
		}
		callers.Wait()
		cancel()
		h.crashed.Store(crashes)
		closing, cancel := context.WithTimeout(w.ctx, generatorTimeout)
		_ = g.Close(closing) // What could not be given back passes. No renewal is under way after it.
		cancel()
	}
}

// drawClock draws by how much a holder's clock is ahead: like that of some node, or far off.
func (c *client) drawClock() time.Duration {
	near := pick(c.random, 0, 0, 0, 700*time.Millisecond, -900*time.Millisecond, 9*time.Second, -9*time.Second)
	if c.random.IntN(10) == 0 {
		return near + pick(c.random, 24*time.Hour, -24*time.Hour)
	}
	return near + pick(c.random, pick(c.random, c.world.machines()...).clock(), 0)
}

// makeStamps is one caller of a generator. Some pause for longer than a window is.
func makeStamps(ctx context.Context, g *generator.Generator, h *holder, random *rand.Rand) {
	for ctx.Err() == nil {
		if id, err := g.Next(ctx); err == nil {
			h.made(id)
		}
		limit := 5 * time.Millisecond
		if random.IntN(60) == 0 {
			limit = 2 * time.Second
		}
		sleep(ctx, time.Duration(random.Int64N(int64(limit))))
	}
}

// mark has nodes make ids of their own workers, until ctx ends.
func (w *world) mark(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	for ctx.Err() == nil && !c.definePool(ctx, marks, 4, false) {
		sleep(ctx, 50*time.Millisecond)
	}
	for ctx.Err() == nil {
		var ids []int64
		got := c.once(ctx, pick(c.random, w.machines()...), history.Op{Kind: history.Other},
			func(ctx context.Context, s *server, _ *history.Op) error {
				r, err := c.pools(s).NextSnowflakes(ctx, &idnodev1.NextSnowflakesRequest{Pool: marks, Count: pick[int32](c.random, 1, 20)})
				ids = r.GetIds()
				return err
			})
		if got.Outcome == history.OK {
			if !slices.IsSorted(ids) {
				w.found("node %s made ids that do not rise: %d", got.Node, ids)
			}
			op := history.Op{Kind: history.Make, Client: got.Client, Node: got.Node, Name: marks, Call: got.Call, Outcome: history.OK}
			for _, id := range ids {
				op.Blocks = append(op.Blocks, history.Block{First: id, Last: id})
			}
			w.history.add(op)
		}
		sleep(ctx, time.Duration(c.random.Int64N(int64(w.plan.pause))))
	}
}

// turnClocks sets clocks of nodes wrong, and right, in half of the seeds, until ctx ends.
func (w *world) turnClocks(ctx context.Context) {
	random := w.plan.stream(950)
	if random.IntN(2) == 0 {
		return
	}
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(random.Int64N(int64(4*time.Second))))
		ahead := pick(random, 0, 0, 8*time.Second, -8*time.Second, 30*time.Second, -30*time.Second)
		pick(random, w.machines()...).ahead.Store(int64(ahead))
	}
}

// clock is by how much the machine's clock is ahead.
func (s *server) clock() time.Duration { return time.Duration(s.ahead.Load()) }
