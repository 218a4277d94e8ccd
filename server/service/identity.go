package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
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
	caller, err := s.enter(ctx)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.nextIdentity(ctx, req)
	return res, s.finish(ctx, "NextIdentity", err)
}

func (s *Service) nextIdentity(ctx context.Context, req NextIdentityRequest) (NextIdentityResponse, error) {
	t, err := s.parse(req)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	if err := s.authorize(ctx, rights.Generate, t.database, t.name); err != nil {
		return NextIdentityResponse{}, err
	}
	if err := s.limitIDs(ctx, t.count); err != nil {
		return NextIdentityResponse{}, err
	}
	return s.takeValues(ctx, t)
}

// NextIdentities takes the next values of several identities together, and returns
// the outcome of each request, in their order. They remain several calls: each
// counts, fails and takes effect by itself.
func (s *Service) NextIdentities(ctx context.Context, reqs []NextIdentityRequest) ([]NextIdentityResponse, []error) {
	responses, errs := make([]NextIdentityResponse, len(reqs)), make([]error, len(reqs))
	values, operations := make([]takeValues, len(reqs)), make([][]byte, len(reqs))
	principal, owner := s.principal(ctx, false), s.principal(ctx, true)
	who := func(i int) *string {
		if values[i].request != nil {
			return owner
		}
		return principal
	}
	caller, entered := s.limitsOf(ctx), 0
	defer func() {
		for range entered {
			s.leave(caller)
		}
	}()
	for i, req := range reqs {
		if err := s.admit(caller); err != nil {
			errs[i] = err
			continue
		}
		entered++
		if values[i], errs[i] = s.parse(req); errs[i] == nil {
			errs[i] = s.authorize(ctx, rights.Generate, values[i].database, values[i].name)
		}
		if errs[i] == nil {
			errs[i] = s.limitIDs(ctx, values[i].count)
		}
		if errs[i] == nil {
			operations[i] = appendPrincipal(values[i].encode(), who(i))
		}
	}
	answers := s.proposeAll(ctx, operations, errs)
	for i := range reqs {
		if errs[i] == nil {
			responses[i], errs[i] = s.taken(values[i], answers[i])
		}
		if unnamed(errs[i], who(i)) {
			responses[i], errs[i] = s.takeValues(ctx, values[i])
		}
		if errs[i] != nil {
			errs[i] = s.finish(ctx, "NextIdentity", proposalError(errs[i], reqs[i].RequestID != nil))
		}
	}
	return responses, errs
}

// parse checks a request and folds what it names.
func (s *Service) parse(r NextIdentityRequest) (takeValues, error) {
	database, name, err := identityKey(r.Database, r.Name)
	if err != nil {
		return takeValues{}, err
	}
	separator, err := docid.ParseSeparator(r.Separator)
	if err != nil {
		return takeValues{}, badForm(err, "")
	}
	count, err := parseCount(r.Count)
	if err != nil {
		return takeValues{}, err
	}
	request, err := s.accept(r.RequestID)
	if err != nil {
		return takeValues{}, err
	}
	return takeValues{
		database: database, name: name, separator: separator, count: count,
		request: request, fingerprint: r.fingerprint,
	}, nil
}

func (r NextIdentityRequest) fingerprint() fingerprint {
	return newFingerprint("NextIdentity").text(r.Database).text(r.Name).number(r.Count).text(r.Separator)
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
	caller, err := s.enter(ctx)
	if err != nil {
		return SeedIdentityResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.seedIdentity(ctx, req)
	return res, s.finish(ctx, "SeedIdentity", err)
}

func (s *Service) seedIdentity(ctx context.Context, req SeedIdentityRequest) (SeedIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return SeedIdentityResponse{}, err
	}
	if req.RequestID, err = s.accept(req.RequestID); err != nil {
		return SeedIdentityResponse{}, err
	}
	if err := s.authorize(ctx, withForce(rights.Seed, req.Force), database, name); err != nil {
		return SeedIdentityResponse{}, err
	}
	if err := s.limitIDs(ctx, 1); err != nil {
		return SeedIdentityResponse{}, err
	}
	if !req.Force {
		res, _, err := s.seed(ctx, req, database, name)
		return res, err
	}
	var res SeedIdentityResponse
	err = s.audited(ctx, audit.Record{Event: audit.EventSeed, Database: database, Name: name, After: req.Value}, func() (change, error) {
		var before any
		res, before, err = s.seed(ctx, req, database, name)
		return change{index: res.LogIndex, before: before, after: res.Value}, err
	})
	return res, err
}

// seed is SeedIdentity of a request that was checked. By force, it also returns
// the value before; nil if there was none, or it is not known.
func (s *Service) seed(ctx context.Context, req SeedIdentityRequest, database, name string) (res SeedIdentityResponse, before any, err error) {
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
		return SeedIdentityResponse{}, nil, err
	}
	if result.Before != nil {
		before = result.GetBefore()
	}
	v, err := value("SeedIdentity", result)
	return SeedIdentityResponse{Value: v, LogIndex: result.GetLogIndex()}, before, err
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
	caller, err := s.enter(ctx)
	if err != nil {
		return DeleteIdentityResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.deleteIdentity(ctx, req)
	return res, s.finish(ctx, "DeleteIdentity", err)
}

func (s *Service) deleteIdentity(ctx context.Context, req DeleteIdentityRequest) (DeleteIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return DeleteIdentityResponse{}, err
	}
	if req.RequestID, err = s.accept(req.RequestID); err != nil {
		return DeleteIdentityResponse{}, err
	}
	if err := s.authorize(ctx, withForce(rights.Delete, req.Forget), database, name); err != nil {
		return DeleteIdentityResponse{}, err
	}
	event := audit.EventDelete
	if req.Forget {
		event = audit.EventForget
	}
	var res DeleteIdentityResponse
	err = s.audited(ctx, audit.Record{Event: event, Database: database, Name: name}, func() (change, error) {
		res, err = s.delete(ctx, req, database, name)
		return change{index: res.LogIndex, before: res.Value}, err
	})
	return res, err
}

// delete is DeleteIdentity of a request that was checked.
func (s *Service) delete(ctx context.Context, req DeleteIdentityRequest, database, name string) (DeleteIdentityResponse, error) {
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

// withForce returns the rights that a call needs that may be made by force.
func withForce(need rights.Right, force bool) rights.Right {
	if force {
		need |= rights.Force
	}
	return need
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
