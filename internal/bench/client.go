package bench

import (
	"context"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// viaClient makes the calls through idnode's Go client: routed to the leader,
// with a request id each, and sharing messages.
type viaClient struct{ c *client.Client }

func (v viaClient) Generate(ctx context.Context, req *idnodev1.GenerateRequest, _ ...grpc.CallOption) (*idnodev1.GenerateResponse, error) {
	if req.Template == "" {
		ids, err := v.c.NextN(ctx, "", int(req.Count))
		return &idnodev1.GenerateResponse{Ids: ids}, err
	}
	blocks, err := v.c.NextBlocks(ctx, req.Template, int(req.Count))
	r := &idnodev1.GenerateResponse{}
	for _, b := range blocks {
		// The suffix is "-" and the tag of the node whose counter it is.
		r.NodeTag = b.Suffix
		r.Blocks = append(r.Blocks, &idnodev1.IdBlock{First: b.First, Last: b.Last})
	}
	return r, err
}

func (v viaClient) NextIdentity(
	ctx context.Context, req *idnodev1.NextIdentityRequest, _ ...grpc.CallOption,
) (*idnodev1.NextIdentityResponse, error) {
	values, err := v.c.Identity(req.Name).NextN(ctx, int(req.Count))
	r := &idnodev1.NextIdentityResponse{}
	for _, b := range values {
		r.Blocks = append(r.Blocks, &idnodev1.ValueBlock{First: b.First, Last: b.Last})
	}
	return r, err
}

func (v viaClient) NextRange(
	ctx context.Context, req *idnodev1.NextRangeRequest, _ ...grpc.CallOption,
) (*idnodev1.NextRangeResponse, error) {
	r, err := v.c.NextRange(ctx, req.Tag, client.RangeRequest{Size: req.Size})
	return &idnodev1.NextRangeResponse{Low: r.Low, High: r.High}, err
}

func (v viaClient) TakeNumbers(
	ctx context.Context, req *idnodev1.TakeNumbersRequest, _ ...grpc.CallOption,
) (*idnodev1.TakeNumbersResponse, error) {
	numbers, err := v.c.Series(req.Series).Take(ctx, client.NumberRequest{Keys: req.Keys})
	r := &idnodev1.TakeNumbersResponse{}
	for _, n := range numbers {
		r.Numbers = append(r.Numbers, &idnodev1.SeriesNumber{Number: n.Number})
	}
	return r, err
}
