package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

type claims struct {
	*base
}

// Claim records a finished id in the cluster: the first claim wins.
func (c *claims) Claim(ctx context.Context, req *idnodev1.ClaimRequest) (*idnodev1.ClaimResponse, error) {
	return admission.UntimedCall(ctx, c.Control, "Claim", req, c.claim)
}

func (c *claims) claim(ctx context.Context, req *idnodev1.ClaimRequest) (*idnodev1.ClaimResponse, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if err := docid.ValidateID(req.GetId(), req.GetSeparator()); err != nil {
		return nil, badForm(err, "")
	}
	key := docid.Fold(req.GetId())
	if err := checkFolded(key, docid.MaxIDBytes, apierror.ReasonInvalidID, "id"); err != nil {
		return nil, err
	}
	request, err := c.accept(req.GetRequestId(), 0, database, func() fingerprint {
		return newFingerprint("Claim").text(req.GetDatabase()).text(req.GetId()).text(req.GetSeparator())
	})
	if err != nil {
		return nil, err
	}
	index, err := c.claimKey(ctx, database, key, request)
	return &idnodev1.ClaimResponse{Id: req.GetId(), LogIndex: index}, err
}

// claimKey claims an id whose form was checked. Database and id are folded.
func (c *claims) claimKey(ctx context.Context, database, id string, request *op.RequestKey) (uint64, error) {
	if err := c.Allow(ctx, rights.Claims, admission.Target{Kind: admission.TargetClaim, Database: database, Name: id}, 1); err != nil {
		return 0, err
	}
	result, err := c.propose(ctx, op.Envelope{Database: database, Request: request}, &raftlogv1.Claim{Id: id}, false)
	if err == nil {
		c.events.issued(database, docid.Semantic, "", 1)
	}
	return result.GetLogIndex(), err
}

// Release frees a claimed id.
func (c *claims) Release(ctx context.Context, req *idnodev1.ReleaseRequest) (*idnodev1.ReleaseResponse, error) {
	return admission.UntimedCall(ctx, c.Control, "Release", req, c.release)
}

func (c *claims) release(ctx context.Context, req *idnodev1.ReleaseRequest) (*idnodev1.ReleaseResponse, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	if err := checkClaimedID(req.GetId()); err != nil {
		return nil, err
	}
	key := docid.Fold(req.GetId())
	if err := checkFolded(key, docid.MaxIDBytes, apierror.ReasonInvalidID, "id"); err != nil {
		return nil, err
	}
	e, err := c.prepare(ctx, req.GetRequestId(), rights.Claims, admission.Target{Database: database, Name: key}, 0, func() fingerprint {
		return newFingerprint("Release").text(req.GetDatabase()).text(req.GetId())
	})
	if err != nil {
		return nil, err
	}
	result, err := c.propose(ctx, e, &raftlogv1.Release{Id: key}, false)
	return &idnodev1.ReleaseResponse{LogIndex: result.GetLogIndex()}, err
}

// anySeparator is a separator no id in use is likely to end with; ids claimed
// under another separator may end with "/".
const anySeparator = "\u2044"

// checkClaimedID checks an id whose separator is not known: it may have been
// claimed under any, so only the forms that no separator allows are refused. An
// id that is not claimed is simply not found.
func checkClaimedID(id string) error {
	err := docid.ValidateID(id, docid.DefaultSeparator)
	if err == nil {
		return nil
	}
	if docid.ValidateID(id, anySeparator) == nil {
		return nil
	}
	return badForm(err, "id")
}
