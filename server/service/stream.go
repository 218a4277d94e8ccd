package service

import (
	"cmp"
	"context"
	"math"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

const (
	// DefaultBlockSize is the default number of ids in a block of a stream.
	DefaultBlockSize = 1024
	// MaxBlockSize is the greatest number.
	MaxBlockSize = etag.MaxBlock
)

// StreamServerSideIds hands out blocks of server-side ids, each when send has returned from the one before.
// For the bounds of the node and for Drain each block is a call, so that a stream delays neither.
func (g *ids) StreamServerSideIds(
	ctx context.Context, req *idnodev1.StreamServerSideIdsRequest, send func(*idnodev1.StreamServerSideIdsResponse) error,
) error {
	database, tag, size, err := g.checkStream(ctx, req)
	if err != nil {
		return g.Finish(ctx, "ServerSideStream", err)
	}
	take := func(ctx context.Context, n int64) (*idnodev1.IdBlock, error) {
		if err := g.allowTemplate(ctx, req.GetTemplate(), admission.Target{Kind: admission.TargetDatabase, Database: database}, n); err != nil {
			return nil, err
		}
		return g.serverSideBlock(database, req.GetTemplate(), tag, n)
	}
	for left := cmp.Or(req.GetCount(), math.MaxInt64); left > 0; left -= size { // Without a count there is no end.
		block, err := admission.UntimedCall(ctx, g.Control, "ServerSideStream", min(size, left), take)
		if err == nil {
			err = send(&idnodev1.StreamServerSideIdsResponse{Block: block, NodeTag: tag})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *ids) checkStream(ctx context.Context, req *idnodev1.StreamServerSideIdsRequest) (database, tag string, size int64, err error) {
	if database, err = databaseKey(req.GetDatabase()); err != nil {
		return "", "", 0, err
	}
	template, err := docid.Parse(req.GetTemplate(), req.GetSeparator())
	if err != nil {
		return "", "", 0, badForm(err, "")
	}
	switch {
	case template.Kind != docid.ServerSide:
		return "", "", 0, apierror.Invalid(apierror.ReasonInvalidID, "template",
			"only a template that ends with the separator gives server-side ids")
	case req.GetCount() < 0:
		return "", "", 0, apierror.Invalid(apierror.ReasonInvalidCount, "count", "the count %d is negative", req.GetCount())
	}
	if size, err = upTo(MaxBlockSize, req.GetBlockSize(), DefaultBlockSize, apierror.ReasonInvalidSize, "block_size"); err != nil {
		return "", "", 0, err
	}
	if err := g.allowTemplate(ctx, req.GetTemplate(), admission.Target{Kind: admission.TargetDatabase, Database: database}, 0); err != nil {
		return "", "", 0, err
	}
	tag, err = g.serverSideTag(req.GetTemplate())
	return database, tag, size, err
}

func (g *ids) serverSideTag(template string) (string, error) {
	tag, confirmed := g.tag()
	if !confirmed {
		return "", &apierror.Error{
			Code: apierror.CodeFailedPrecondition, Reason: apierror.ReasonNodeTagNotAssigned,
			Message: "the cluster has not confirmed this node's tag yet",
		}
	}
	if err := docid.CheckServerSide(template, tag); err != nil {
		return "", badForm(err, "template")
	}
	return tag, nil
}

// serverSideBlock takes count etags, 1 to MaxBlockSize.
func (g *ids) serverSideBlock(database, template, tag string, count int64) (*idnodev1.IdBlock, error) {
	first, err := g.etags.NextBlock(database, int(count))
	if err != nil {
		return nil, etagError(err)
	}
	last := first + uint64(count) - 1
	if last < first || last > etag.MaxEtag {
		return nil, etagError(etag.ErrExhausted)
	}
	g.events.issued(database, docid.ServerSide, template, count)
	return &idnodev1.IdBlock{
		Prefix: template, First: int64(first), Last: int64(last),
		Width: numberDigits, Suffix: "-" + tag,
	}, nil
}
