package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// beLate has first tries come late: a node takes a call in, and what it sends to
// others is held up. Meanwhile the caller asks another node, with success, and so
// many more calls follow that the window no longer knows of it.
func (w *world) beLate(ctx context.Context, number int) {
	c, first := newClient(w, number), newClient(w, number+1)
	defer c.close()
	defer first.close()
	for ctx.Err() == nil {
		c.tryTwice(ctx, first)
		sleep(ctx, time.Duration(c.random.Int64N(int64(800*time.Millisecond))))
	}
}

// tryTwice has one client make a first try, and another its retry.
func (c *client) tryTwice(ctx context.Context, first *client) {
	late, quick := pick(c.random, c.world.machines()...), pick(c.random, c.world.machines()...)
	op := history.Op{Kind: history.Next, Name: "late", Count: 1}
	c.requests++
	op.Request = fmt.Sprintf("%d-%d", c.number, c.requests)
	seen := c.seen
	retry := &idnodev1.RequestId{Id: op.Request, RetrySince: &seen}
	if _, _, ok := first.state(ctx, late); !ok {
		return // The call must arrive at the node in time: what is late is what the node sends.
	}
	c.world.network.hold(late.host, time.Duration(c.random.Int64N(int64(longestDelay))))
	var trying sync.WaitGroup
	defer trying.Wait()
	trying.Go(func() { first.once(ctx, late, op, first.nextKeyed(&idnodev1.RequestId{Id: op.Request})) })
	sleep(ctx, time.Duration(c.random.Int64N(int64(30*time.Millisecond))))
	if c.once(ctx, quick, op, c.nextKeyed(retry)).Outcome != history.OK {
		return
	}
	for range c.world.plan.window + 1 {
		c.requests++
		other := history.Op{Kind: history.Next, Name: "orders", Count: 1, Request: fmt.Sprintf("%d-%d", c.number, c.requests)}
		c.once(ctx, quick, other, c.nextKeyed(&idnodev1.RequestId{Id: other.Request}))
	}
}

// nextKeyed takes values with a request id.
func (c *client) nextKeyed(id *idnodev1.RequestId) call {
	return func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: op.Name, Count: op.Count, RequestId: id})
		op.Blocks = blocks(r.GetBlocks())
		c.saw(r)
		return err
	}
}
