package service

import (
	"context"
	"fmt"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// NextIdentityRequest asks for the next values of an identity.
type NextIdentityRequest struct {
	Database string
	// Name may end with one pipe.
	Name string
	// Count is 1 to 1,000,000; 0 means 1.
	Count int64
	// Separator is the one of the ids the caller will build: values whose id is
	// claimed under it are stepped over. Empty means "/".
	Separator string
	RequestID *RequestID
}

// NextIdentityResponse holds the values taken, in order: one block, or up to 64
// where claimed ids lie between.
type NextIdentityResponse struct {
	Blocks   []identity.Block
	LogIndex uint64
}

// NextIdentity takes the next values of an identity.
func (s *Service) NextIdentity(ctx context.Context, req NextIdentityRequest) (NextIdentityResponse, error) {
	if err := s.enter(); err != nil {
		return NextIdentityResponse{}, err
	}
	defer s.leave()
	res, err := s.nextIdentity(ctx, req)
	return res, s.finish(ctx, "NextIdentity", err)
}

func (s *Service) nextIdentity(ctx context.Context, req NextIdentityRequest) (NextIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	separator, err := docid.ParseSeparator(req.Separator)
	if err != nil {
		return NextIdentityResponse{}, badForm(err, "")
	}
	count, err := parseCount(req.Count)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	if err := checkRequestID(req.RequestID); err != nil {
		return NextIdentityResponse{}, err
	}
	return s.takeValues(ctx, takeValues{
		database: database, name: name, separator: separator, count: count,
		request:     req.RequestID,
		fingerprint: func() fingerprint { return req.fingerprint() },
	})
}

func (r NextIdentityRequest) fingerprint() fingerprint {
	return newFingerprint("NextIdentity").text(r.Database).text(r.Name).number(r.Count).text(r.Separator)
}

// takeValues is what NextIdentity and Generate have in common. Names are folded.
type takeValues struct {
	database, name string
	separator      string
	count          int64
	request        *RequestID
	fingerprint    func() fingerprint
}

func (s *Service) takeValues(ctx context.Context, t takeValues) (NextIdentityResponse, error) {
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Database: t.database,
		Request:  requestKey(t.database, t.request, t.fingerprint),
		Op: &raftlogv1.Operation_IdentityNext{IdentityNext: &raftlogv1.IdentityNext{
			Name: t.name, Count: t.count, Separator: docid.Fold(t.separator),
		}},
	}, t.request != nil)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	values := result.GetIdentityNext().GetValues()
	if err := checkValues(values, t.count); err != nil {
		return NextIdentityResponse{}, internal(err)
	}
	blocks := make([]identity.Block, len(values))
	for i, v := range values {
		blocks[i] = identity.Block{First: v.GetFirst(), Last: v.GetLast()}
	}
	return NextIdentityResponse{Blocks: blocks, LogIndex: result.GetLogIndex()}, nil
}

// checkValues makes sure that the values are as many as were asked for: ids are
// built from them in a loop, which a wrong result must not make endless.
func checkValues(values []*raftlogv1.Values, count int64) error {
	var sum int64
	for _, v := range values {
		// The difference of two int64 may overflow, so the loop bounds it.
		n := v.GetLast() - v.GetFirst() + 1
		if v.GetLast() < v.GetFirst() || n < 1 || n > count-sum {
			return fmt.Errorf("the values %d to %d do not fit %d", v.GetFirst(), v.GetLast(), count)
		}
		sum += n
	}
	if sum != count {
		return fmt.Errorf("%d values came for %d", sum, count)
	}
	return nil
}

// SeedIdentityRequest moves the last used value of an identity.
type SeedIdentityRequest struct {
	Database string
	// Name may end with one pipe.
	Name string
	// Value is the new last used value.
	Value int64
	// Force sets exactly Value, also when it is lower.
	Force bool
	// Expected, if set, is the only current value under which anything happens.
	Expected  *int64
	RequestID *RequestID
}

// SeedIdentityResponse holds the last used value after the call.
type SeedIdentityResponse struct {
	Value    int64
	LogIndex uint64
}

// SeedIdentity moves the last used value of an identity.
func (s *Service) SeedIdentity(ctx context.Context, req SeedIdentityRequest) (SeedIdentityResponse, error) {
	if err := s.enter(); err != nil {
		return SeedIdentityResponse{}, err
	}
	defer s.leave()
	res, err := s.seedIdentity(ctx, req)
	return res, s.finish(ctx, "SeedIdentity", err)
}

func (s *Service) seedIdentity(ctx context.Context, req SeedIdentityRequest) (SeedIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return SeedIdentityResponse{}, err
	}
	if err := checkRequestID(req.RequestID); err != nil {
		return SeedIdentityResponse{}, err
	}
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Database: database,
		Request: requestKey(database, req.RequestID, func() fingerprint {
			return newFingerprint("SeedIdentity").text(req.Database).text(req.Name).
				number(req.Value).flag(req.Force).optional(req.Expected)
		}),
		Op: &raftlogv1.Operation_IdentitySeed{IdentitySeed: &raftlogv1.IdentitySeed{
			Name: name, Value: req.Value, Force: req.Force, Expected: req.Expected,
		}},
	}, req.RequestID != nil)
	if err != nil {
		return SeedIdentityResponse{}, err
	}
	v, err := value("SeedIdentity", result)
	return SeedIdentityResponse{Value: v, LogIndex: result.GetLogIndex()}, err
}

// DeleteIdentityRequest names the identity to delete.
type DeleteIdentityRequest struct {
	Database string
	// Name may end with one pipe.
	Name string
	// Forget drops the last used value too: values then come twice.
	Forget    bool
	RequestID *RequestID
}

// DeleteIdentityResponse holds the last used value at the moment of deletion.
type DeleteIdentityResponse struct {
	Value    int64
	LogIndex uint64
}

// DeleteIdentity hides an identity, or forgets it.
func (s *Service) DeleteIdentity(ctx context.Context, req DeleteIdentityRequest) (DeleteIdentityResponse, error) {
	if err := s.enter(); err != nil {
		return DeleteIdentityResponse{}, err
	}
	defer s.leave()
	res, err := s.deleteIdentity(ctx, req)
	return res, s.finish(ctx, "DeleteIdentity", err)
}

func (s *Service) deleteIdentity(ctx context.Context, req DeleteIdentityRequest) (DeleteIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return DeleteIdentityResponse{}, err
	}
	if err := checkRequestID(req.RequestID); err != nil {
		return DeleteIdentityResponse{}, err
	}
	result, err := s.propose(ctx, &raftlogv1.Operation{
		Database: database,
		Request: requestKey(database, req.RequestID, func() fingerprint {
			return newFingerprint("DeleteIdentity").text(req.Database).text(req.Name).flag(req.Forget)
		}),
		Op: &raftlogv1.Operation_IdentityDelete{IdentityDelete: &raftlogv1.IdentityDelete{
			Name: name, Forget: req.Forget,
		}},
	}, req.RequestID != nil)
	if err != nil {
		return DeleteIdentityResponse{}, err
	}
	v, err := value("DeleteIdentity", result)
	return DeleteIdentityResponse{Value: v, LogIndex: result.GetLogIndex()}, err
}

// identityKey checks and folds database and name.
func identityKey(database, name string) (foldedDatabase, foldedName string, err error) {
	foldedDatabase, err = databaseKey(database)
	if err != nil {
		return "", "", err
	}
	name, err = docid.ParseName(name)
	if err != nil {
		return "", "", badForm(err, "")
	}
	foldedName = docid.Fold(name)
	if err := checkFolded(foldedName, docid.MaxNameBytes, ReasonInvalidName, "name"); err != nil {
		return "", "", err
	}
	return foldedDatabase, foldedName, nil
}

// checkFolded bounds what goes into the state. Folding may lengthen a text by
// half, so one that is short enough as written may be too long as a key.
func checkFolded(folded string, limit int, reason, field string) error {
	if len(folded) > limit {
		return invalid(reason, field, "%s is %d bytes long without regard to case, more than the %d that are allowed", field, len(folded), limit)
	}
	return nil
}

// databaseKey checks and folds the name of a database.
func databaseKey(database string) (string, error) {
	database, err := docid.ParseDatabase(database)
	if err != nil {
		return "", badForm(err, "")
	}
	return docid.Fold(database), nil
}

// parseCount gives 0 its meaning and checks the bound.
func parseCount(count int64) (int64, error) {
	switch {
	case count == 0:
		return 1, nil
	case count < 0 || count > identity.MaxCount:
		return 0, invalid(ReasonInvalidCount, "count", "the count %d is not in 1 to %d", count, identity.MaxCount)
	default:
		return count, nil
	}
}
