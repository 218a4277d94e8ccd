package client

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/idnode/idnode/client/idnodev1"
)

// Identity is a counter agreed by the cluster: it gives 1, 2, 3 … without gaps. It is safe
// for concurrent use.
type Identity struct {
	client *Client
	name   string
	opts   options
}

// Identity returns the identity with this name, with or without the pipe at its end. It makes
// no call: an identity exists once a value was taken. WithDatabase and WithSeparator apply to all
// calls of the handle that have no such option themselves. Another option is refused by the calls.
func (c *Client) Identity(name string, opts ...Option) Identity {
	return Identity{client: c, name: name, opts: c.options(opts, hasSeparator)}
}

// ValueBlock has the values of an identity from First to Last, both included.
type ValueBlock struct{ First, Last int64 }

// Next takes the next value. Concurrent callers of the same identity may take their values in
// one call; see [Config].Unshared.
func (i Identity) Next(ctx context.Context, opts ...Option) (int64, error) {
	return i.client.nextValue(ctx, i.name, i.opts.with(opts, hasSeparator|hasRequestID))
}

// NextN takes the next n values, 1 to 1,000,000: one block, or several if claimed ids are in
// between.
func (i Identity) NextN(ctx context.Context, n int, opts ...Option) ([]ValueBlock, error) {
	o := i.opts.with(opts, hasSeparator|hasRequestID)
	if n < 1 {
		return nil, invalidField("INVALID_COUNT", "count", "it must be at least 1")
	}
	if n > 1 {
		if strings.HasPrefix(o.requestID, blockPrefix) {
			return nil, blockIDMisused()
		}
		return i.client.takeValues(ctx, i.name, n, o)
	}
	value, err := i.client.nextValue(ctx, i.name, o)
	if err != nil {
		return nil, err
	}
	return []ValueBlock{{First: value, Last: value}}, nil
}

// nextValue takes one value of an identity, in a shared call if possible.
func (c *Client) nextValue(ctx context.Context, name string, o options) (int64, error) {
	if o.err != nil {
		return 0, o.err
	}
	if strings.HasPrefix(o.requestID, blockPrefix) {
		return c.sharedValue(ctx, name, o)
	}
	own := func(ctx context.Context) (int64, error) { return c.valueAt(ctx, name, sharedRef{size: 1}, o) }
	if o.requestID != "" || c.cfg.Unshared {
		return own(ctx)
	}
	return c.shares.next(ctx, sourceKey{database: o.database, name: name, separator: o.separator}, own)
}

// blockIDMisused is the error of a block's request id in a call that takes values of its own.
func blockIDMisused() error {
	return invalidField("INVALID_REQUEST_ID", "request_id",
		"ids that begin with "+blockPrefix+" name values that callers took together; the id of an error names one of them")
}

// sharedValue repeats the call for one value of a block. Its error names the caller's request
// id, never the block's.
func (c *Client) sharedValue(ctx context.Context, name string, o options) (int64, error) {
	asked := o.requestID
	ref, ok := parseShared(asked)
	if !ok {
		return 0, blockIDMisused()
	}
	o.requestID = ref.id
	value, err := c.valueAt(ctx, name, ref, o)
	if e, ok := errors.AsType[*Error](err); ok && e.RequestID.ID != "" {
		own := *e
		own.RequestID.ID = asked
		err = &own
	}
	return value, err
}

// valueAt takes a block and returns one of its values.
func (c *Client) valueAt(ctx context.Context, name string, ref sharedRef, o options) (int64, error) {
	blocks, err := c.takeValues(ctx, name, ref.size, o)
	if err != nil {
		return 0, err
	}
	value, ok := valueAt(blocks, ref.index)
	if !ok {
		return 0, malformed("an answer with too few values")
	}
	return value, nil
}

// takeValues takes n values in one call.
func (c *Client) takeValues(ctx context.Context, name string, n int, o options) ([]ValueBlock, error) {
	req := &idnodev1.NextIdentityRequest{
		Database: o.database, Name: name, Count: int64(n), Separator: o.separator, RequestId: o.newRequestID(),
	}
	r, err := invoke(ctx, c, o, counts, (*api).NextIdentity, req)
	if err != nil {
		return nil, err
	}
	var blocks []ValueBlock
	for _, b := range r.GetBlocks() {
		blocks = append(blocks, ValueBlock{First: b.GetFirst(), Last: b.GetLast()})
	}
	if len(blocks) == 0 {
		return nil, malformed("an answer without values")
	}
	return blocks, nil
}

// Get reads the last value taken. It fails with ErrNotFound if no value ever was.
func (i Identity) Get(ctx context.Context, opts ...Option) (int64, error) {
	o := i.opts.with(opts, isRead)
	r, err := invoke(ctx, i.client, o, reads, (*api).GetIdentity, &idnodev1.GetIdentityRequest{
		Database: o.database, Name: i.name, Consistency: o.consistency,
	})
	return r.GetIdentity().GetValue(), err
}

// Seed raises the last value taken to value, so that the next value is above it, and returns
// the resulting last value. A value below the current one changes nothing, unless WithForce;
// see also WithExpected.
func (i Identity) Seed(ctx context.Context, value int64, opts ...Option) (int64, error) {
	o := i.opts.with(opts, hasRequestID|hasExpected|isSeed)
	req := &idnodev1.SeedIdentityRequest{
		Database: o.database, Name: i.name, Value: &value, Force: o.force, Expected: o.expected, RequestId: o.newRequestID(),
	}
	r, err := invoke(ctx, i.client, o, counts, (*api).SeedIdentity, req)
	return r.GetValue(), err
}

// Delete hides the identity and returns its last value. A later use continues above that
// value, unless WithForget.
func (i Identity) Delete(ctx context.Context, opts ...Option) (int64, error) {
	o := i.opts.with(opts, hasRequestID|isDelete)
	req := &idnodev1.DeleteIdentityRequest{Database: o.database, Name: i.name, Forget: o.forget, RequestId: o.newRequestID()}
	r, err := invoke(ctx, i.client, o, counts, (*api).DeleteIdentity, req)
	return r.GetValue(), err
}

// Counter is an identity or a HiLo counter in a listing.
type Counter struct {
	// Name is the folded name or tag.
	Name string
	// Value is the last value taken of an identity, or the highest reserved number of a tag.
	Value int64
}

// Identities lists the identities whose folded names begin with prefix, in
// order. It ends with the first error.
func (c *Client) Identities(ctx context.Context, prefix string, opts ...Option) iter.Seq2[Counter, error] {
	o := c.options(opts, isRead)
	return pages(func(token string) ([]Counter, string, error) {
		r, err := invoke(ctx, c, o, reads, (*api).ListIdentities, &idnodev1.ListIdentitiesRequest{
			Database: o.database, Prefix: prefix, PageSize: pageSize, PageToken: token, Consistency: o.consistency,
		})
		var page []Counter
		for _, i := range r.GetIdentities() {
			page = append(page, Counter{Name: i.GetName(), Value: i.GetValue()})
		}
		return page, r.GetNextPageToken(), err
	})
}
