package harness

import (
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// These make the message that an op asks for, the same for each way in: a call that
// is repeated elsewhere with its request id must be the same call.

func requestID(op *history.Op) *idnodev1.RequestId {
	if op.Request == "" {
		return nil
	}
	return &idnodev1.RequestId{Id: op.Request}
}

func nextRequest(op *history.Op) *idnodev1.NextIdentityRequest {
	return &idnodev1.NextIdentityRequest{Database: op.Database, Name: op.Name, Count: op.Count, RequestId: requestID(op)}
}

func seedRequest(op *history.Op) *idnodev1.SeedIdentityRequest {
	return &idnodev1.SeedIdentityRequest{
		Database: op.Database, Name: op.Name, Value: proto.Int64(op.Value), Force: op.Force, Expected: op.Expected, RequestId: requestID(op),
	}
}

func claimRequest(op *history.Op) *idnodev1.ClaimRequest {
	return &idnodev1.ClaimRequest{Database: op.Database, Id: op.ID, RequestId: requestID(op)}
}

func releaseRequest(op *history.Op) *idnodev1.ReleaseRequest {
	return &idnodev1.ReleaseRequest{Database: op.Database, Id: op.ID, RequestId: requestID(op)}
}

func rangeRequest(op *history.Op) *idnodev1.NextRangeRequest {
	return &idnodev1.NextRangeRequest{Database: op.Database, Tag: op.Name, Size: op.Count, RequestId: requestID(op)}
}

func returnRequest(op *history.Op, token string) *idnodev1.ReturnRangeRequest {
	return &idnodev1.ReturnRangeRequest{
		Database: op.Database, Tag: op.Name, Low: op.Low, High: op.High, Last: proto.Int64(op.Last), Token: token, RequestId: requestID(op),
	}
}

func etagRequest(op *history.Op) *idnodev1.GenerateRequest {
	return &idnodev1.GenerateRequest{Database: op.Database, Template: "users/", Count: op.Count, BlocksOnly: true}
}

// These fill in the answer to an op; there may be none.

func took(op *history.Op, blocks []*idnodev1.ValueBlock) {
	for _, b := range blocks {
		op.Blocks = append(op.Blocks, history.Block{First: b.First, Last: b.Last})
	}
}

// reserved leaves the token alone if there is no answer: a call that is repeated may
// fail, and its first answer counts.
func reserved(op *history.Op, r *idnodev1.NextRangeResponse, token *string) {
	op.Low, op.High, op.Tag, op.Reserve = r.GetLow(), r.GetHigh(), r.GetNodeTag(), r.GetFromReserve()
	if r != nil {
		*token = r.Token
	}
}

func returned(op *history.Op, r *idnodev1.ReturnRangeResponse) {
	if op.Returned = r.GetReturned(); op.Returned {
		op.Result = r.GetMax() // else it is that of the moment, and none of ours
	}
}

func generated(op *history.Op, r *idnodev1.GenerateResponse) {
	op.Tag = r.GetNodeTag()
	for _, b := range r.GetBlocks() {
		op.Blocks = append(op.Blocks, history.Block{First: b.First, Last: b.Last})
	}
}
