package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
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

// Claim records a finished id in the cluster: the first claim wins.
func (s *Service) Claim(ctx context.Context, req ClaimRequest) (ClaimResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ClaimResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.claim(ctx, req)
	return res, s.finish(ctx, "Claim", err)
}

func (s *Service) claim(ctx context.Context, req ClaimRequest) (ClaimResponse, error) {
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
	if req.RequestID, err = s.accept(req.RequestID); err != nil {
		return ClaimResponse{}, err
	}
	index, err := s.claimKey(ctx, database, key, req.RequestID, func() fingerprint {
		return newFingerprint("Claim").text(req.Database).text(req.ID).text(req.Separator)
	})
	if err != nil {
		return ClaimResponse{}, err
	}
	return ClaimResponse{ID: req.ID, LogIndex: index}, nil
}

// claimKey claims an id whose form was checked. Database and id are folded.
func (s *Service) claimKey(ctx context.Context, database, id string, request *RequestID, f func() fingerprint) (uint64, error) {
	if err := s.authorize(ctx, rights.Claims, database, id); err != nil {
		return 0, err
	}
	if err := s.limitIDs(ctx, 1); err != nil {
		return 0, err
	}
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Database: database,
		Request:  requestKey(database, request, f),
		Op:       &raftlogv1.Operation_Claim{Claim: &raftlogv1.Claim{Id: id}},
	}, request != nil)
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
func (s *Service) Release(ctx context.Context, req ReleaseRequest) (ReleaseResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ReleaseResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.release(ctx, req)
	return res, s.finish(ctx, "Release", err)
}

func (s *Service) release(ctx context.Context, req ReleaseRequest) (ReleaseResponse, error) {
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
	if req.RequestID, err = s.accept(req.RequestID); err != nil {
		return ReleaseResponse{}, err
	}
	if err := s.authorize(ctx, rights.Claims, database, key); err != nil {
		return ReleaseResponse{}, err
	}
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Database: database,
		Request: requestKey(database, req.RequestID, func() fingerprint {
			return newFingerprint("Release").text(req.Database).text(req.ID)
		}),
		Op: &raftlogv1.Operation_Release{Release: &raftlogv1.Release{Id: key}},
	}, req.RequestID != nil)
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
