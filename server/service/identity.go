package service

import (
	"context"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
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

// identities are the use cases of identities.
type identities struct {
	*calls
	*proposer
	*reader
}

// NextIdentity takes the next values of an identity.
func (i *identities) NextIdentity(ctx context.Context, req NextIdentityRequest) (NextIdentityResponse, error) {
	return call(ctx, i.calls, "NextIdentity", req, i.nextIdentity)
}

func (i *identities) nextIdentity(ctx context.Context, req NextIdentityRequest) (NextIdentityResponse, error) {
	t, err := i.prepare(ctx, req)
	if err != nil {
		return NextIdentityResponse{}, err
	}
	return i.take(ctx, t)
}

// NextIdentities takes the next values of several identities together, and returns
// the outcome of each request, in their order. They remain several calls: each
// counts, fails and takes effect by itself.
func (i *identities) NextIdentities(ctx context.Context, reqs []NextIdentityRequest) ([]NextIdentityResponse, []error) {
	responses, errs := make([]NextIdentityResponse, len(reqs)), make([]error, len(reqs))
	values, operations := make([]takeValues, len(reqs)), make([][]byte, len(reqs))
	principal, owner := i.principal(ctx, false), i.principal(ctx, true)
	who := func(n int) *string {
		if values[n].Request != nil {
			return owner
		}
		return principal
	}
	caller, entered := i.limitsOf(ctx), 0
	defer func() {
		for range entered {
			i.leave(caller)
		}
	}()
	for n, req := range reqs {
		if err := i.admit(caller); err != nil {
			errs[n] = err
			continue
		}
		entered++
		if values[n], errs[n] = i.prepare(ctx, req); errs[n] == nil {
			operations[n] = values[n].operation(who(n))
		}
	}
	answers := i.proposeAll(ctx, operations, errs)
	for n := range reqs {
		if errs[n] == nil {
			responses[n], errs[n] = i.taken(values[n], answers[n])
		}
		if needsPrincipal(errs[n], who(n)) {
			responses[n], errs[n] = i.take(ctx, values[n])
		}
		if errs[n] != nil {
			errs[n] = i.finish(ctx, "NextIdentity", proposalError(errs[n], reqs[n].RequestID != nil))
		}
	}
	return responses, errs
}

// prepare checks a request, folds what it names, and refuses what the caller has no right
// to or no ids left for.
func (i *identities) prepare(ctx context.Context, r NextIdentityRequest) (takeValues, error) {
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
	request, err := i.accept(r.RequestID, count)
	if err != nil {
		return takeValues{}, err
	}
	if err := i.allow(ctx, rights.Generate, target{targetIdentity, database, name}, count); err != nil {
		return takeValues{}, err
	}
	// Last, because it takes the longest: a refused call is cheap.
	return takeValues{
		Envelope: op.Envelope{Database: database, Request: requestKey(database, request, r.fingerprint)},
		name:     name, separator: separator, count: count,
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

// SeedIdentity moves the last used value of an identity, and returns it.
func (i *identities) SeedIdentity(ctx context.Context, req SeedIdentityRequest) (Value, error) {
	return call(ctx, i.calls, "SeedIdentity", req, i.seedIdentity)
}

func (i *identities) seedIdentity(ctx context.Context, req SeedIdentityRequest) (Value, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return Value{}, err
	}
	if req.RequestID, err = i.accept(req.RequestID, 0); err != nil {
		return Value{}, err
	}
	need := withForce(i.toRaise(i.raisedBy(req, database, name)), req.Force)
	if err := i.allow(ctx, need, target{targetIdentity, database, name}, 1); err != nil {
		return Value{}, err
	}
	var res Value
	err = i.audited(ctx, audit.Record{Event: audit.EventSeed, Database: database, Name: name, After: req.Value, Force: req.Force}, func() (change, error) {
		var before any
		res, before, err = i.seed(ctx, req, database, name)
		return change{index: res.LogIndex, before: before, after: res.Value}, err
	})
	return res, err
}

// raisedBy returns how many numbers a seed takes, as far as this node knows where the
// identity stands: at worst too many.
func (i *identities) raisedBy(req SeedIdentityRequest, database, name string) uint64 {
	stands := req.Expected // Otherwise nothing happens.
	if stands == nil {
		counter, _ := i.state.Identity(database, name)
		stands = &counter.Last
	}
	if req.Value <= *stands {
		return 0
	}
	return uint64(req.Value) - uint64(*stands)
}

// seed is SeedIdentity of a request that was checked. It also returns the value before; nil
// if there was none.
func (i *identities) seed(ctx context.Context, req SeedIdentityRequest, database, name string) (res Value, before any, err error) {
	e := op.Envelope{Database: database, Request: requestKey(database, req.RequestID, func() fingerprint {
		return newFingerprint("SeedIdentity").text(req.Database).text(req.Name).
			number(req.Value).flag(req.Force).optional(req.Expected)
	})}
	seed := &raftlogv1.IdentitySeed{Name: name, Value: req.Value, Force: req.Force, Expected: req.Expected}
	result, err := i.propose(ctx, e, seed, req.RequestID != nil)
	if err != nil {
		return Value{}, nil, err
	}
	if result.Before != nil {
		before = result.GetBefore()
	}
	res, err = value("SeedIdentity", result, nil)
	return res, before, err
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

// DeleteIdentity hides an identity, or forgets it, and returns the last used value at
// that moment.
func (i *identities) DeleteIdentity(ctx context.Context, req DeleteIdentityRequest) (Value, error) {
	return call(ctx, i.calls, "DeleteIdentity", req, i.deleteIdentity)
}

func (i *identities) deleteIdentity(ctx context.Context, req DeleteIdentityRequest) (Value, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return Value{}, err
	}
	if req.RequestID, err = i.accept(req.RequestID, 0); err != nil {
		return Value{}, err
	}
	if err := i.authorize(ctx, withForce(rights.Delete, req.Forget), database, name); err != nil {
		return Value{}, err
	}
	event := audit.EventDelete
	if req.Forget {
		event = audit.EventForget
	}
	var res Value
	err = i.audited(ctx, audit.Record{Event: event, Database: database, Name: name}, func() (change, error) {
		res, err = i.delete(ctx, req, database, name)
		return change{index: res.LogIndex, before: res.Value}, err
	})
	return res, err
}

// delete is DeleteIdentity of a request that was checked.
func (i *identities) delete(ctx context.Context, req DeleteIdentityRequest, database, name string) (Value, error) {
	e := op.Envelope{Database: database, Request: requestKey(database, req.RequestID, func() fingerprint {
		return newFingerprint("DeleteIdentity").text(req.Database).text(req.Name).flag(req.Forget)
	})}
	result, err := i.propose(ctx, e, &raftlogv1.IdentityDelete{Name: name, Forget: req.Forget}, req.RequestID != nil)
	return value("DeleteIdentity", result, err)
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
