package client

import (
	"context"
	"iter"

	"github.com/idnode/idnode/client/idnodev1"
)

// Claim records a finished id as the caller's. The first claim wins; all others fail with
// ErrIDClaimed.
func (c *Client) Claim(ctx context.Context, id string, opts ...Option) error {
	if err := usable(id); err != nil {
		return err
	}
	o := c.options(opts, hasSeparator|hasRequestID)
	req := &idnodev1.ClaimRequest{Database: o.database, Id: id, Separator: o.separator, RequestId: o.newRequestID()}
	_, err := once(ctx, c, o, idnodev1.IdsServiceClient.Claim, req)
	return err
}

// Release releases a claimed id. It fails with ErrNotFound if the id is not claimed.
func (c *Client) Release(ctx context.Context, id string, opts ...Option) error {
	o := c.options(opts, hasRequestID)
	req := &idnodev1.ReleaseRequest{Database: o.database, Id: id, RequestId: o.newRequestID()}
	_, err := once(ctx, c, o, idnodev1.IdsServiceClient.Release, req)
	return err
}

// Claims lists the claimed ids, folded, that begin with prefix, in order. It ends with the
// first error.
func (c *Client) Claims(ctx context.Context, prefix string, opts ...Option) iter.Seq2[string, error] {
	o := c.options(opts, isRead)
	return pages(func(token string) ([]string, string, error) {
		r, err := ask(ctx, c, o, idnodev1.IdsServiceClient.ListClaims, &idnodev1.ListClaimsRequest{
			Database: o.database, Prefix: prefix, PageSize: pageSize, PageToken: token, Consistency: o.consistency,
		})
		return r.GetIds(), r.GetNextPageToken(), err
	})
}
