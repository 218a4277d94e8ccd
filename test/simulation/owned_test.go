package simulation

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// owned is an identity that one client alone uses, one call after the other. So
// what each answer must be is known, of calls that are refused too, and of those
// that set the counter back, which no history of many callers could tell.
type owned struct {
	name           string
	number, rename int
	last           int64
	exists, hidden bool
}

func newOwned(number, rename int) owned {
	return owned{name: fmt.Sprintf("own-%d-%d", number, rename), number: number, rename: rename}
}

// useOwn makes one call on the client's own identity and compares the answer with
// what it must be. If the outcome stays unknown, the name is never used again.
func (c *client) useOwn(ctx context.Context) {
	o := &c.own
	draw := []func() ownCall{o.next(c), o.next(c), o.seed(c), o.seed(c), o.conditional(c), o.delete(c), o.get(c)}
	asked := pick(c.random, draw...)()
	got, ok := c.settle(ctx, asked.do)
	switch {
	case !ok:
		*o = newOwned(o.number, o.rename+1)
	case got != asked.want:
		c.world.found("%s on %s, which stands at %d (it is there: %t, hidden: %t), was answered %s, not %s",
			asked.what, o.name, o.last, o.exists, o.hidden, got, asked.want)
		*o = newOwned(o.number, o.rename+1)
	default:
		asked.then(o)
	}
}

// ownCall is a call on one's own identity, what it must be answered, and what the
// identity is like afterwards, if it was.
type ownCall struct {
	what, want string
	do         func(ctx context.Context, s *server, id *idnodev1.RequestId) (string, error)
	then       func(o *owned)
}

// settle makes a call, with a request id, until the outcome is certain. It returns
// the answer or the reason of the refusal.
func (c *client) settle(ctx context.Context,
	do func(ctx context.Context, s *server, id *idnodev1.RequestId) (string, error),
) (string, bool) {
	op := history.Op{Kind: history.Other}
	c.requests++
	c.last = lastRequest{&idnodev1.RequestId{Id: fmt.Sprintf("%d-%d", c.number, c.requests)}, c.seen}
	for try := range 6 {
		if try == 1 {
			c.retry()
		}
		answer := ""
		got := c.once(ctx, pick(c.random, c.world.machines()...), op, func(ctx context.Context, s *server, _ *history.Op) (err error) {
			answer, err = do(ctx, s, c.last.id)
			return err
		})
		switch {
		case got.Outcome == history.OK:
			return answer, true
		case got.Outcome == history.Failed && got.Code == "REQUEST_ID_EXPIRED":
			return "", false
		case got.Outcome == history.Failed && !passing(got.Code):
			return got.Code, true
		}
	}
	return "", false
}

// passing says whether a refusal is for a reason that has nothing to do with the
// call.
func passing(code string) bool {
	switch code {
	case "NO_QUORUM", "LEADER_UNREACHABLE", "STARTING", "STOPPING", "OVERLOADED", "NODE_TAG_NOT_ASSIGNED", "NOT_FORMED":
		return true
	}
	return false
}

func (o *owned) next(c *client) func() ownCall {
	return func() ownCall {
		count, name := pick[int64](c.random, 1, 1, 30), c.spelled(o.name)
		call := ownCall{what: fmt.Sprintf("next %d", count), want: "COUNTER_EXHAUSTED", then: func(*owned) {}}
		if o.last <= math.MaxInt64-count {
			call.want = fmt.Sprint([]history.Block{{First: o.last + 1, Last: o.last + count}})
			call.then = func(o *owned) { o.exists, o.hidden, o.last = true, false, o.last+count }
		}
		call.do = func(ctx context.Context, s *server, id *idnodev1.RequestId) (string, error) {
			r, err := c.ids(s).NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name, Count: count, RequestId: id})
			c.saw(r)
			return fmt.Sprint(blocks(r.GetBlocks())), err
		}
		return call
	}
}

// seed seeds with any value, by force or not; now and then nearly with the highest
// there is.
func (o *owned) seed(c *client) func() ownCall {
	return func() ownCall {
		value, force := c.random.Int64N(100), c.random.IntN(2) == 0
		if c.random.IntN(4) == 0 {
			value = math.MaxInt64 - c.random.Int64N(40)
		}
		return o.seedCall(c, value, force, nil)
	}
}

// conditional seeds under a condition that holds, or does not.
func (o *owned) conditional(c *client) func() ownCall {
	return func() ownCall {
		expected := o.last
		if c.random.IntN(2) == 0 {
			expected = c.random.Int64N(50)
		}
		return o.seedCall(c, c.random.Int64N(100), c.random.IntN(2) == 0, &expected)
	}
}

func (o *owned) seedCall(c *client, value int64, force bool, expected *int64) ownCall {
	call := ownCall{what: fmt.Sprintf("seed %d (force %t)", value, force), want: "CONCURRENCY", then: func(*owned) {}}
	if expected != nil {
		call.what += fmt.Sprintf(" if it is %d", *expected)
	}
	if expected == nil || *expected == o.last {
		after := value
		if !force {
			after = max(value, o.last)
		}
		call.want = fmt.Sprint(after)
		call.then = func(o *owned) { o.exists, o.hidden, o.last = true, false, after }
	}
	// A request id stands for one spelling, so it is drawn once.
	name := c.spelled(o.name)
	call.do = func(ctx context.Context, s *server, id *idnodev1.RequestId) (string, error) {
		r, err := c.ids(s).SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{
			Name: name, Value: proto.Int64(value), Force: force, Expected: expected, RequestId: id,
		})
		c.saw(r)
		return fmt.Sprint(r.GetValue()), err
	}
	return call
}

// delete hides or forgets.
func (o *owned) delete(c *client) func() ownCall {
	return func() ownCall {
		forget := c.random.IntN(2) == 0
		call := ownCall{what: fmt.Sprintf("delete (forget %t)", forget), want: "IDENTITY_NOT_FOUND", then: func(*owned) {}}
		if o.exists && (!o.hidden || forget) {
			call.want = fmt.Sprint(o.last)
			call.then = func(o *owned) {
				o.hidden = true
				if forget {
					o.exists, o.hidden, o.last = false, false, 0
				}
			}
		}
		call.do = func(ctx context.Context, s *server, id *idnodev1.RequestId) (string, error) {
			r, err := c.ids(s).DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: o.name, Forget: forget, RequestId: id})
			c.saw(r)
			return fmt.Sprint(r.GetValue()), err
		}
		return call
	}
}

func (o *owned) get(c *client) func() ownCall {
	return func() ownCall {
		call := ownCall{what: "get", want: "IDENTITY_NOT_FOUND", then: func(*owned) {}}
		if o.exists && !o.hidden {
			call.want = fmt.Sprint(o.last)
		}
		call.do = func(ctx context.Context, s *server, _ *idnodev1.RequestId) (string, error) {
			r, err := c.ids(s).GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: o.name})
			c.saw(r)
			return fmt.Sprint(r.GetIdentity().GetValue()), err
		}
		return call
	}
}
