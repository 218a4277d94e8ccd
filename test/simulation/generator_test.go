package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/idnode/idnode/client/generator"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

const (
	// sharers are the callers of one generator.
	sharers = 3
	// generatorTimeout bounds a call of the generator, and its close.
	generatorTimeout = time.Second
)

var errNoRange = errors.New("no range")

// source is where a generator gets its ranges: from any node, over gRPC.
type source struct {
	client *client
	mu     sync.Mutex
	// ranges are all there were; a number is of the newest that has it.
	ranges []history.Op
}

// Next implements generator.RangeSource.
func (s *source) Next(ctx context.Context, r generator.Request) (got generator.Range, err error) {
	op := history.Op{Kind: history.Range, Name: "generated"}
	id := s.client.request(&op)
	op = s.client.issue(ctx, op, func(ctx context.Context, to *server, op *history.Op) error {
		a, err := s.client.ids(to).NextRange(ctx,
			&idnodev1.NextRangeRequest{Tag: "generated", LastSize: r.LastSize, LastMax: r.LastMax, Size: 5, RequestId: id})
		s.client.saw(a)
		op.Low, op.High, op.Tag, op.Reserve = a.GetLow(), a.GetHigh(), a.GetNodeTag(), a.GetFromReserve()
		if err == nil {
			got = generator.Range{
				Low: op.Low, High: op.High, Granted: a.GetSize(), Prefix: a.GetPrefix(), NodeTag: op.Tag,
				FromReserve: op.Reserve, Token: a.GetToken(),
			}
		}
		return err
	})
	if op.Outcome != history.OK {
		return got, errNoRange
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranges = append(s.ranges, op)
	return got, nil
}

// Return implements generator.RangeSource.
func (s *source) Return(ctx context.Context, r generator.Range, last int64) error {
	s.client.giveBack(ctx, heldRange{name: "generated", tag: r.NodeTag, low: r.Low, high: r.High, last: last, token: r.Token})
	return nil
}

// use records the use of a number.
func (s *source) use(n generator.Number, caller int) {
	now := s.client.world.history.now()
	op := history.Op{
		Kind: history.Use, Client: int64(caller), Name: "generated", Tag: n.NodeTag(), Call: now, Outcome: history.OK,
		Blocks: []history.Block{{First: n.Value(), Last: n.Value()}},
	}
	s.mu.Lock()
	for _, r := range s.ranges {
		if r.Low <= n.Value() && n.Value() <= r.High {
			op.Low, op.High = r.Low, r.High
		}
	}
	s.mu.Unlock()
	s.client.world.history.add(op)
}

// generate uses one generator after the other until ctx ends, each by several
// callers at a time, and closes it.
func (w *world) generate(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	for ctx.Err() == nil {
		s := &source{client: c}
		g, err := generator.New(s, generator.Config{Timeout: generatorTimeout})
		if err != nil {
			panic(err) // The configuration is at fault.
		}
		using, cancel := context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(3*time.Second))))
		var callers sync.WaitGroup
		for i := range sharers {
			random := w.plan.stream(500 + uint64(i))
			callers.Go(func() { share(using, g, s, random, number*10+i) })
		}
		callers.Wait()
		cancel()
		closing, cancel := context.WithTimeout(w.ctx, generatorTimeout)
		_ = g.Close(closing) // What could not be given back is a hole.
		cancel()
	}
}

// share is one caller of a generator.
func share(ctx context.Context, g *generator.Generator, s *source, random *rand.Rand, caller int) {
	for ctx.Err() == nil {
		if n, err := g.Next(ctx); err == nil {
			s.use(n, caller)
		}
		sleep(ctx, time.Duration(random.Int64N(int64(20*time.Millisecond))))
	}
}
