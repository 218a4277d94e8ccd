package simulation

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// crowded is how many databases callers use beyond the limit.
const crowded = 4

// crowd has each node asked for server-side ids in more databases than the limit
// allows, once all nodes know of the limit.
func (w *world) crowd(ctx context.Context, number int) {
	c := newClient(w, number)
	defer c.close()
	if !c.set(ctx, "max-databases", w.plan.crowd) || !c.allApply(ctx) {
		return
	}
	for ctx.Err() == nil {
		s := pick(c.random, w.machines()...)
		for i := range w.plan.crowd + crowded {
			c.takeEtags(ctx, s, fmt.Sprintf("tenant-%d", i), 1)
		}
		sleep(ctx, time.Duration(c.random.Int64N(int64(50*time.Millisecond))))
	}
}

// set changes a setting, and says whether it could before ctx ended.
func (c *client) set(ctx context.Context, key string, value int64) bool {
	for ctx.Err() == nil {
		got := c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
			func(ctx context.Context, s *server, _ *history.Op) error {
				r, err := c.cluster(s).UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: key, Value: proto.Int64(value)})
				c.saw(r)
				return err
			})
		if got.Outcome == history.OK {
			return true
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return false
}

// allApply waits until all nodes have applied what the client has seen.
func (c *client) allApply(ctx context.Context) bool {
	for _, s := range c.world.machines() {
		for {
			if index, _, ok := c.state(ctx, s); ok && index >= c.seen {
				break
			}
			if sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
				return false
			}
		}
	}
	return true
}
