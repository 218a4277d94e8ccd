package client

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// Next makes an id from a template: "users/" gives a server-side id, "users|" an
// identity, "" a GUID, and anything else is the id itself, which WithClaim
// records as taken.
func (c *Client) Next(ctx context.Context, template string, opts ...Option) (string, error) {
	o := c.options(opts, hasSeparator|hasRequestID|hasClaim)
	if t, err := docid.Parse(template, o.separator); err == nil && t.Kind == docid.Identity && !o.claim {
		value, err := c.nextValue(ctx, t.Name, o)
		if err != nil {
			return "", err
		}
		return docid.IdentityID(t.Name, t.Separator, value), nil
	}
	ids, err := c.NextN(ctx, template, 1, opts...)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// NextN makes n ids from a template, in one call: 1 to 1,000,000, or to 10,000 GUIDs.
func (c *Client) NextN(ctx context.Context, template string, n int, opts ...Option) ([]string, error) {
	r, err := c.generate(ctx, template, n, false, opts)
	if err != nil {
		return nil, err
	}
	ids := r.GetIds()
	if len(ids) == 0 {
		ids = make([]string, 0, n)
		for _, b := range blocksOf(r) {
			for id := range b.IDs() {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) != n {
		return nil, malformed(fmt.Sprintf("asked for %d ids, got %d", n, len(ids)))
	}
	return ids, nil
}

// NextUUID7 makes a UUID of version 7 (RFC 9562): the UUIDs of one node sort by time of
// creation. Like a GUID of Next it needs no quorum.
func (c *Client) NextUUID7(ctx context.Context, opts ...Option) (string, error) {
	o := c.options(opts, 0)
	r, err := invoke(ctx, c, o, anywhere, (*api).Generate,
		&idnodev1.GenerateRequest{Database: o.database, TimeOrdered: true})
	if err != nil {
		return "", err
	}
	if len(r.GetIds()) != 1 {
		return "", malformed(fmt.Sprintf("asked for a UUID, got %d", len(r.GetIds())))
	}
	return r.GetIds()[0], nil
}

// NextBlocks is NextN without writing out the ids, for identities and server-side ids only.
func (c *Client) NextBlocks(ctx context.Context, template string, n int, opts ...Option) ([]IDBlock, error) {
	r, err := c.generate(ctx, template, n, true, opts)
	if err != nil {
		return nil, err
	}
	return blocksOf(r), nil
}

// generate asks for blocks if the template allows it: the ids are then written out here and
// not sent one by one.
func (c *Client) generate(ctx context.Context, template string, n int, blocks bool, opts []Option) (*idnodev1.GenerateResponse, error) {
	o := c.options(opts, hasSeparator|hasRequestID|hasClaim)
	t, err := docid.Parse(template, o.separator)
	if err != nil {
		return nil, invalid(err)
	}
	if n < 1 {
		return nil, invalidField("INVALID_COUNT", "count", "it must be at least 1")
	}
	if t.Kind == docid.Semantic && usable(template) != nil {
		return nil, usable(template)
	}
	numbered := t.Kind == docid.Identity || t.Kind == docid.ServerSide
	req := &idnodev1.GenerateRequest{
		Database: o.database, Template: template, Separator: o.separator, Count: int64(n), Claim: o.claim,
		BlocksOnly: blocks || numbered && n > 1,
	}
	if t.Kind == docid.Identity || t.Kind == docid.Semantic && o.claim {
		req.RequestId = o.newRequestID()
		return invoke(ctx, c, o, counts, (*api).Generate, req)
	}
	if o.requestID != "" || o.retrySince != nil {
		return nil, invalidField("INVALID_OPTION", "", "WithRequestID and WithRetryOf do not apply to this template")
	}
	return invoke(ctx, c, o, anywhere, (*api).Generate, req)
}

// IDBlock is consecutive ids: Prefix + number + Suffix for First ≤ number ≤ Last.
type IDBlock struct {
	Prefix      string
	First, Last int64
	// Width is the least number of digits; zeros fill them.
	Width  int
	Suffix string
}

// Len returns the number of ids in the block.
func (b IDBlock) Len() int64 { return b.Last - b.First + 1 }

// ID returns the id of a number of the block.
func (b IDBlock) ID(number int64) string {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], number, 10)
	id := make([]byte, 0, len(b.Prefix)+max(b.Width, len(text))+len(b.Suffix))
	id = append(id, b.Prefix...)
	for range b.Width - len(text) {
		id = append(id, '0')
	}
	return string(append(append(id, text...), b.Suffix...))
}

// IDs yields the ids in order.
func (b IDBlock) IDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range b.Len() {
			if !yield(b.ID(b.First + i)) {
				return
			}
		}
	}
}

func blocksOf(r *idnodev1.GenerateResponse) []IDBlock {
	var blocks []IDBlock
	for _, b := range r.GetBlocks() {
		blocks = append(blocks, IDBlock{
			Prefix: b.GetPrefix(), First: b.GetFirst(), Last: b.GetLast(),
			Width: int(b.GetWidth()), Suffix: b.GetSuffix(),
		})
	}
	return blocks
}

// Claim records a finished id as the caller's. The first claim wins; all others fail with
// ErrIDClaimed.
func (c *Client) Claim(ctx context.Context, id string, opts ...Option) error {
	if err := usable(id); err != nil {
		return err
	}
	o := c.options(opts, hasSeparator|hasRequestID)
	req := &idnodev1.ClaimRequest{Database: o.database, Id: id, Separator: o.separator, RequestId: o.newRequestID()}
	_, err := invoke(ctx, c, o, counts, (*api).Claim, req)
	return err
}

// Release releases a claimed id. It fails with ErrNotFound if the id is not claimed.
func (c *Client) Release(ctx context.Context, id string, opts ...Option) error {
	o := c.options(opts, hasRequestID)
	req := &idnodev1.ReleaseRequest{Database: o.database, Id: id, RequestId: o.newRequestID()}
	_, err := invoke(ctx, c, o, counts, (*api).Release, req)
	return err
}

// Claims lists the claimed ids, folded, that begin with prefix, in order. It ends with the
// first error.
func (c *Client) Claims(ctx context.Context, prefix string, opts ...Option) iter.Seq2[string, error] {
	o := c.options(opts, isRead)
	return pages(func(token string) ([]string, string, error) {
		r, err := invoke(ctx, c, o, reads, (*api).ListClaims, &idnodev1.ListClaimsRequest{
			Database: o.database, Prefix: prefix, PageSize: pageSize, PageToken: token, Consistency: o.consistency,
		})
		return r.GetIds(), r.GetNextPageToken(), err
	})
}
