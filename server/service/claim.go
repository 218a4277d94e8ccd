package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// ClaimRequest names the id to claim.
type ClaimRequest struct {
	Database string
	// ID is a finished id.
	ID string
	// Separator is the one of the id's parts; empty means "/".
	Separator string
	RequestID *RequestID
}

// ClaimResponse says that the id is the caller's.
type ClaimResponse struct {
	// ID is the id as claimed.
	ID       string
	LogIndex uint64
}

// claims are the use cases of claimed ids.
type claims struct {
	*calls
	*proposer
	*reader
}

// Claim records a finished id in the cluster: the first claim wins.
func (c *claims) Claim(ctx context.Context, req ClaimRequest) (ClaimResponse, error) {
	return call(ctx, c.calls, "Claim", req, c.claim)
}

func (c *claims) claim(ctx context.Context, req ClaimRequest) (ClaimResponse, error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return ClaimResponse{}, err
	}
	if err := docid.ValidateID(req.ID, req.Separator); err != nil {
		return ClaimResponse{}, badForm(err, "")
	}
	key := docid.Fold(req.ID)
	if err := checkFolded(key, docid.MaxIDBytes, ReasonInvalidID, "id"); err != nil {
		return ClaimResponse{}, err
	}
	if req.RequestID, err = c.accept(req.RequestID, 0); err != nil {
		return ClaimResponse{}, err
	}
	index, err := c.claimKey(ctx, database, key, req.RequestID, func() fingerprint {
		return newFingerprint("Claim").text(req.Database).text(req.ID).text(req.Separator)
	})
	if err != nil {
		return ClaimResponse{}, err
	}
	return ClaimResponse{ID: req.ID, LogIndex: index}, nil
}

// claimKey claims an id whose form was checked. Database and id are folded.
func (c *claims) claimKey(ctx context.Context, database, id string, request *RequestID, f func() fingerprint) (uint64, error) {
	if err := c.allow(ctx, rights.Claims, target{targetClaim, database, id}, 1); err != nil {
		return 0, err
	}
	e := op.Envelope{Database: database, Request: requestKey(database, request, f)}
	result, err := c.propose(ctx, e, &raftlogv1.Claim{Id: id}, request != nil)
	return result.GetLogIndex(), err
}

// ReleaseRequest names the id to release.
type ReleaseRequest struct {
	Database string
	// ID is the claimed id, in any case.
	ID        string
	RequestID *RequestID
}

// ReleaseResponse says that the id is free.
type ReleaseResponse struct {
	LogIndex uint64
}

// Release gives a claimed id free again.
func (c *claims) Release(ctx context.Context, req ReleaseRequest) (ReleaseResponse, error) {
	return call(ctx, c.calls, "Release", req, c.release)
}

func (c *claims) release(ctx context.Context, req ReleaseRequest) (ReleaseResponse, error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return ReleaseResponse{}, err
	}
	if err := checkClaimedID(req.ID); err != nil {
		return ReleaseResponse{}, err
	}
	key := docid.Fold(req.ID)
	if err := checkFolded(key, docid.MaxIDBytes, ReasonInvalidID, "id"); err != nil {
		return ReleaseResponse{}, err
	}
	if req.RequestID, err = c.accept(req.RequestID, 0); err != nil {
		return ReleaseResponse{}, err
	}
	if err := c.authorize(ctx, rights.Claims, database, key); err != nil {
		return ReleaseResponse{}, err
	}
	e := op.Envelope{Database: database, Request: requestKey(database, req.RequestID, func() fingerprint {
		return newFingerprint("Release").text(req.Database).text(req.ID)
	})}
	result, err := c.propose(ctx, e, &raftlogv1.Release{Id: key}, req.RequestID != nil)
	return ReleaseResponse{LogIndex: result.GetLogIndex()}, err
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
