package simulation

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// step makes one call of some kind.
func (c *client) step(ctx context.Context) {
	if c.world.plan.imports && c.random.IntN(10) == 0 {
		c.merge(ctx)
		return
	}
	if c.world.plan.reserve > 0 && c.random.IntN(3) == 0 {
		c.nextRange(ctx)
		return
	}
	switch n := c.random.IntN(100); {
	case n < 28:
		c.nextIdentity(ctx)
	case n < 36:
		c.exchange(ctx)
	case n < 51:
		c.serverSide(ctx)
	case n < 60:
		c.nextRange(ctx)
	case n < 68:
		c.returnRange(ctx)
	case n < 71:
		c.abuseRange(ctx)
	case n < 74:
		c.setMax(ctx)
	case n < 78:
		c.claim(ctx)
	case n < 82:
		c.release(ctx)
	case n < 84:
		c.seed(ctx)
	case n < 86:
		c.hide(ctx)
	case n < 93:
		c.useOwn(ctx)
	case n < 97:
		c.getIdentity(ctx)
	default:
		c.state(ctx, pick(c.random, c.world.machines()...))
	}
}

// The names: some are only counted, one is seeded, one hidden, of one values are
// claimed, and of one claims are released.
func (c *client) name() string {
	return pick(c.random, "orders", "orders", "invoices", "seeded", "hidden", "claimed", "released")
}

// database is the default one, mostly. Claims are made in that one only.
func (c *client) database() string { return pick(c.random, "", "", "", "second") }

// spelled is a name as a caller may write it: case does not matter.
func (c *client) spelled(name string) string {
	return pick(c.random, name, name, name+"|", strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:])
}

func (c *client) nextIdentity(ctx context.Context) {
	op := history.Op{Kind: history.Next, Database: c.database(), Name: c.name(), Count: pick[int64](c.random, 1, 1, 1, 2, 20)}
	id := c.request(&op)
	name := c.spelled(op.Name)
	next := func(count int64) call {
		return func(ctx context.Context, s *server, op *history.Op) error {
			r, err := c.ids(s).NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: op.Database, Name: name, Count: count, RequestId: id})
			op.Blocks = blocks(r.GetBlocks())
			c.saw(r)
			return err
		}
	}
	got := c.issue(ctx, op, next(op.Count))
	if id == nil || got.Outcome != history.OK || c.random.IntN(4) != 0 {
		return
	}
	// The same request id for something else must be refused.
	c.retry()
	other := c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other, Database: op.Database}, next(op.Count+1))
	if other.Outcome == history.OK {
		c.world.found("request id %s was answered for two different requests", op.Request)
	}
}

func blocks(in []*idnodev1.ValueBlock) []history.Block {
	var out []history.Block
	for _, b := range in {
		out = append(out, history.Block{First: b.GetFirst(), Last: b.GetLast()})
	}
	return out
}

// serverSide takes server-side ids of one node, often several times in a row.
func (c *client) serverSide(ctx context.Context) {
	s := pick(c.random, c.world.machines()...)
	database := c.database()
	for range pick(c.random, 1, 1, 4) {
		c.takeEtags(ctx, s, database, pick[int64](c.random, 1, 1, 3, 40))
	}
}

// takeEtags takes so many server-side ids of a node.
func (c *client) takeEtags(ctx context.Context, s *server, database string, count int64) {
	s.ceilings.asked(database)
	c.once(ctx, s, history.Op{Kind: history.Etag, Database: database}, func(ctx context.Context, s *server, op *history.Op) error {
		ticket := c.world.tracer.asksEtags(s)
		r, err := c.ids(s).Generate(ctx, &idnodev1.GenerateRequest{Database: op.Database, Template: "users/", Count: count, BlocksOnly: true})
		op.Tag = r.GetNodeTag()
		for _, b := range r.GetBlocks() {
			op.Blocks = append(op.Blocks, history.Block{First: b.GetFirst(), Last: b.GetLast()})
		}
		c.world.tracer.gaveEtags(ticket, op.Database, op.Blocks)
		return err
	})
}

func (c *client) nextRange(ctx context.Context) {
	op := history.Op{
		Kind: history.Range, Database: c.database(), Name: pick(c.random, "customers", "customers", "set"),
		Count: pick[int64](c.random, 0, 1, 10),
	}
	id := c.request(&op)
	tag, token := strings.TrimSuffix(c.spelled(op.Name), "|"), ""
	got := c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).NextRange(ctx,
			&idnodev1.NextRangeRequest{Database: op.Database, Tag: tag, Size: op.Count, Label: "traffic", RequestId: id})
		op.Low, op.High, op.Tag, op.Reserve = r.GetLow(), r.GetHigh(), r.GetNodeTag(), r.GetFromReserve()
		if err == nil {
			token = r.GetToken()
		}
		c.saw(r)
		return err
	})
	if got.Outcome == history.OK {
		held := heldRange{got.Database, got.Name, got.Tag, got.Low, got.High, got.Low - 1, token}
		c.ranges = append(c.ranges, held)
		c.world.ranges.Store(&held)
	}
}

// returnRange uses some numbers of the newest range, and often gives the rest
// back.
func (c *client) returnRange(ctx context.Context) {
	if len(c.ranges) == 0 {
		return
	}
	r := &c.ranges[len(c.ranges)-1]
	if n := c.random.Int64N(r.high - r.last + 1); n > 0 {
		now := c.world.history.now()
		c.world.history.add(history.Op{
			Kind: history.Use, Client: int64(c.number), Database: r.database, Name: r.name, Low: r.low, High: r.high, Tag: r.tag,
			Call: now, Outcome: history.OK, Blocks: []history.Block{{First: r.last + 1, Last: r.last + n}},
		})
		r.last += n
	}
	if c.random.IntN(3) == 0 {
		return // It goes on with it later.
	}
	given := *r
	c.ranges = c.ranges[:len(c.ranges)-1]
	c.giveBack(ctx, given)
	if c.random.IntN(3) == 0 {
		c.given = append(c.given, given)
	}
}

// giveBack returns a range.
func (c *client) giveBack(ctx context.Context, r heldRange) {
	op := history.Op{Kind: history.Return, Database: r.database, Name: r.name, Low: r.low, High: r.high, Last: r.last}
	id := c.request(&op)
	c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		a, err := c.ids(s).ReturnRange(ctx, &idnodev1.ReturnRangeRequest{
			Database: r.database, Tag: r.name, Low: r.low, High: r.high, Last: proto.Int64(r.last), Token: r.token, RequestId: id,
		})
		op.Returned, op.Result = a.GetReturned(), a.GetMax()
		c.saw(a)
		return err
	})
}

// abuseRange returns a range in a way in which one must not: below its beginning,
// with an invented token, or long after it was given back.
func (c *client) abuseRange(ctx context.Context) {
	newest := c.world.ranges.Load()
	switch kind := c.random.IntN(3); {
	case kind == 0 && len(c.given) > 0:
		c.giveBack(ctx, pick(c.random, c.given...))
	case newest == nil:
	case kind == 1:
		forged := *newest
		forged.token = "0123456789abcdef"
		c.giveBack(ctx, forged)
	case newest.low > 1:
		below := *newest
		below.last = c.random.Int64N(below.low - 1)
		c.giveBack(ctx, below)
	}
}

// setMax takes numbers in the way of a client that runs the whole algorithm: it
// reads Max, and raises it if no other caller has meanwhile.
func (c *client) setMax(ctx context.Context) {
	var seen *int64
	c.once(ctx, pick(c.random, c.world.machines()...), history.Op{Kind: history.Other},
		func(ctx context.Context, s *server, _ *history.Op) error {
			r, err := c.ids(s).GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: "set"})
			if err == nil {
				value := r.GetHilo().GetMax()
				seen = &value
			}
			return err
		})
	if seen == nil {
		return
	}
	op := history.Op{Kind: history.Set, Name: "set", Expected: seen, Value: *seen + 1 + c.random.Int64N(20)}
	id := c.request(&op)
	c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: op.Name, Max: op.Value, Expected: *op.Expected, RequestId: id})
		op.Result = r.GetMax()
		c.saw(r)
		return err
	})
}

// merge imports a Max, mostly of the newest range that somebody was given, who may
// be about to return it.
func (c *client) merge(ctx context.Context) {
	op := history.Op{Kind: history.Merge, Name: "customers", Value: 1 + c.random.Int64N(100)}
	if newest := c.world.ranges.Load(); newest != nil {
		op.Database, op.Name, op.Value = newest.database, newest.name, newest.low+c.random.Int64N(newest.high-newest.low+2)
	}
	c.once(ctx, pick(c.random, c.world.machines()...), op, func(ctx context.Context, s *server, op *history.Op) error {
		merge := &idnodev1.DatabaseMerge{Database: op.Database, Hilos: []*idnodev1.HiLoValue{{Tag: op.Name, Max: op.Value}}}
		_, err := idnodev1.NewAdminServiceClient(c.conn(s)).MergeCounters(ctx,
			&idnodev1.MergeCountersRequest{Databases: []*idnodev1.DatabaseMerge{merge}})
		return err
	})
}

func (c *client) claim(ctx context.Context) {
	op := history.Op{Kind: history.Claim, Name: pick(c.random, "claimed", "claimed", "released"), Value: 1 + c.random.Int64N(400)}
	c.issueClaim(ctx, op)
}

// release gives a claim free, if there is one.
func (c *client) release(ctx context.Context) {
	op := history.Op{Kind: history.Release, Name: "released", Value: 1 + c.random.Int64N(30)}
	if c.random.IntN(2) == 0 {
		op.Kind = history.Claim
	}
	c.issueClaim(ctx, op)
}

func (c *client) issueClaim(ctx context.Context, op history.Op) {
	op.ID = fmt.Sprintf("%s/%d", op.Name, op.Value)
	id := c.request(&op)
	spelled := strings.ReplaceAll(c.spelled(op.Name), "|", "") + op.ID[len(op.Name):]
	c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		if op.Kind == history.Release {
			r, err := c.ids(s).Release(ctx, &idnodev1.ReleaseRequest{Id: spelled, RequestId: id})
			c.saw(r)
			return err
		}
		r, err := c.ids(s).Claim(ctx, &idnodev1.ClaimRequest{Id: spelled, RequestId: id})
		c.saw(r)
		return err
	})
}

func (c *client) seed(ctx context.Context) {
	op := history.Op{Kind: history.Seed, Name: "seeded", Value: c.random.Int64N(2000)}
	id := c.request(&op)
	c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: op.Name, Value: proto.Int64(op.Value), RequestId: id})
		op.Result = r.GetValue()
		c.saw(r)
		return err
	})
}

// hide deletes an identity, which keeps its value.
func (c *client) hide(ctx context.Context) {
	op := history.Op{Kind: history.Delete, Database: c.database(), Name: "hidden"}
	id := c.request(&op)
	c.issue(ctx, op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Database: op.Database, Name: op.Name, RequestId: id})
		op.Result = r.GetValue()
		c.saw(r)
		return err
	})
}

func (c *client) getIdentity(ctx context.Context) {
	op := history.Op{Kind: history.Get, Database: c.database(), Name: c.name()}
	c.once(ctx, pick(c.random, c.world.machines()...), op, func(ctx context.Context, s *server, op *history.Op) error {
		r, err := c.ids(s).GetIdentity(ctx, &idnodev1.GetIdentityRequest{Database: op.Database, Name: op.Name})
		op.Result = r.GetIdentity().GetValue()
		c.saw(r)
		return err
	})
}

// state records a node's state hash, and which node has its tag.
func (c *client) state(ctx context.Context, s *server) (index, hash uint64, ok bool) {
	var r *idnodev1.GetStatusResponse
	got := c.once(ctx, s, history.Op{Kind: history.Other}, func(ctx context.Context, s *server, _ *history.Op) (err error) {
		r, err = c.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
		return err
	})
	if got.Outcome != history.OK || r.GetAppliedIndex() == 0 {
		return 0, 0, false
	}
	now := c.world.history.now()
	c.world.history.add(history.Op{
		Kind: history.Hash, Node: s.tag(), ID: r.GetClusterId(), Index: r.GetAppliedIndex(), Hash: r.GetStateHash(),
		Call: now, Outcome: history.OK,
	})
	c.world.history.add(history.Op{Kind: history.Member, Tag: r.GetSelf().GetTag(), ID: r.GetSelf().GetId(), Call: now, Outcome: history.OK})
	return r.GetAppliedIndex(), r.GetStateHash(), true
}

// take takes one identity from a certain node.
func (c *client) take(ctx context.Context, s *server) bool {
	return c.once(ctx, s, history.Op{Kind: history.Next, Name: "orders", Count: 1}, c.next).Outcome == history.OK
}

// next takes values without a request id.
func (c *client) next(ctx context.Context, s *server, op *history.Op) error {
	r, err := c.ids(s).NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: op.Name, Count: op.Count})
	op.Blocks = blocks(r.GetBlocks())
	return err
}
