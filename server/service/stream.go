package service

import (
	"cmp"
	"context"
	"io"
	"math"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/etag"
)

const (
	// DefaultBlockSize is how many ids a block of a ServerSideStream has.
	DefaultBlockSize = 1024
	// MaxBlockSize is how many it has at most.
	MaxBlockSize = etag.MaxBlock
)

// ServerSideStream hands out blocks of server-side ids, for one caller at a time.
type ServerSideStream struct {
	ids      *ids
	database string
	template string
	tag      string
	size     int64
	left     int64
}

// ServerSideStream checks the request. It takes nothing yet.
func (g *ids) ServerSideStream(ctx context.Context, req *idnodev1.StreamServerSideIdsRequest) (*ServerSideStream, error) {
	stream, err := g.serverSideStream(ctx, req)
	if err != nil {
		return nil, g.finish(ctx, "ServerSideStream", err)
	}
	return stream, nil
}

func (g *ids) serverSideStream(ctx context.Context, req *idnodev1.StreamServerSideIdsRequest) (*ServerSideStream, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	template, err := docid.Parse(req.GetTemplate(), req.GetSeparator())
	if err != nil {
		return nil, badForm(err, "")
	}
	switch {
	case template.Kind != docid.ServerSide:
		return nil, invalid(ReasonInvalidID, "template", "only a template that ends with the separator gives server-side ids")
	case req.GetCount() < 0:
		return nil, invalid(ReasonInvalidCount, "count", "the count %d is negative", req.GetCount())
	}
	size, err := upTo(MaxBlockSize, req.GetBlockSize(), DefaultBlockSize, ReasonInvalidSize, "block_size")
	if err != nil {
		return nil, err
	}
	if err := g.allowTemplate(ctx, req.GetTemplate(), target{targetDatabase, database, ""}, 0); err != nil {
		return nil, err
	}
	tag, err := g.serverSideTag(req.GetTemplate())
	if err != nil {
		return nil, err
	}
	return &ServerSideStream{
		ids: g, database: database, template: req.GetTemplate(), tag: tag,
		size: size, left: cmp.Or(req.GetCount(), math.MaxInt64), // Without a count there is no end.
	}, nil
}

// NodeTag is the tag of the node that gives the ids.
func (b *ServerSideStream) NodeTag() string { return b.tag }

// Next takes the next block, or returns io.EOF after the last. For the bounds of the node and
// for Drain each block is a call, so that a stream delays neither.
func (b *ServerSideStream) Next(ctx context.Context) (*idnodev1.IdBlock, error) {
	n := min(b.size, b.left)
	if n == 0 {
		return nil, io.EOF
	}
	return call(ctx, b.ids.calls, "ServerSideStream", n, b.take)
}

func (b *ServerSideStream) take(ctx context.Context, n int64) (*idnodev1.IdBlock, error) {
	if err := b.ids.allowTemplate(ctx, b.template, target{targetDatabase, b.database, ""}, n); err != nil {
		return nil, err
	}
	block, err := b.ids.serverSideBlock(b.database, b.template, b.tag, n)
	if err == nil {
		b.left -= n
	}
	return block, err
}

func (g *ids) serverSideTag(template string) (string, error) {
	tag, confirmed := g.tag()
	if !confirmed {
		return "", &Error{
			Code: FailedPrecondition, Reason: ReasonTagNotAssigned,
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
