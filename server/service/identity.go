package service

import (
	"cmp"
	"context"
	"strings"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

type identities struct {
	*base
}

// NextIdentity takes the next values of an identity.
func (i *identities) NextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	return admission.UntimedCall(ctx, i.Control, "NextIdentity", req, i.nextIdentity)
}

func (i *identities) nextIdentity(ctx context.Context, req *idnodev1.NextIdentityRequest) (*idnodev1.NextIdentityResponse, error) {
	t, err := i.toTake(ctx, req)
	if err != nil {
		return nil, err
	}
	taken, err := i.take(ctx, t)
	return taken.response(), err
}

// NextIdentities takes the next values of several identities in one proposal, and returns the
// outcome of each request, in their order. The calls stay independent: each counts, fails and
// takes effect by itself.
func (i *identities) NextIdentities(ctx context.Context, reqs []*idnodev1.NextIdentityRequest) ([]*idnodev1.NextIdentityResponse, []error) {
	responses, errs := make([]*idnodev1.NextIdentityResponse, len(reqs)), make([]error, len(reqs))
	values, operations := make([]takeValues, len(reqs)), make([][]byte, len(reqs))
	principal, owner := i.principal(ctx, false), i.principal(ctx, true)
	who := func(n int) *string {
		if values[n].Request != nil {
			return owner
		}
		return principal
	}
	caller, entered := i.LimitsOf(ctx), 0
	defer func() {
		for range entered {
			i.Leave(caller)
		}
	}()
	for n, req := range reqs {
		if err := i.Admit(caller); err != nil {
			errs[n] = err
			continue
		}
		entered++
		if values[n], errs[n] = i.toTake(ctx, req); errs[n] == nil {
			operations[n] = values[n].operation(who(n))
		}
	}
	answers := i.proposeAll(ctx, operations, errs)
	for n := range reqs {
		var taken takenValues
		if errs[n] == nil {
			taken, errs[n] = i.taken(values[n], answers[n])
		}
		if needsPrincipal(errs[n], who(n)) {
			taken, errs[n] = i.take(ctx, values[n])
		}
		if errs[n] != nil {
			errs[n] = i.Finish(ctx, "NextIdentity", proposalError(errs[n], reqs[n].GetRequestId() != nil))
			continue
		}
		responses[n] = taken.response()
	}
	return responses, errs
}

// toTake checks a request, folds its names, and refuses a caller without the right to it or
// beyond its limits.
func (i *identities) toTake(ctx context.Context, r *idnodev1.NextIdentityRequest) (takeValues, error) {
	database, name, err := identityKey(r.GetDatabase(), r.GetName())
	if err != nil {
		return takeValues{}, err
	}
	separator, err := docid.ParseSeparator(r.GetSeparator())
	if err != nil {
		return takeValues{}, badForm(err, "")
	}
	count, err := parseCount(r.GetCount(), identity.MaxCount)
	if err != nil {
		return takeValues{}, err
	}
	key, err := i.accept(r.GetRequestId(), count, database, func() fingerprint {
		return newFingerprint("NextIdentity").text(r.GetDatabase()).text(r.GetName()).number(r.GetCount()).text(r.GetSeparator())
	})
	if err != nil {
		return takeValues{}, err
	}
	what := admission.Target{Kind: admission.TargetIdentity, Database: database, Name: name}
	if err := i.Allow(ctx, rights.Generate, what, count); err != nil {
		return takeValues{}, err
	}
	return takeValues{Envelope: op.Envelope{Database: database, Request: key}, name: name, separator: separator, count: count}, nil
}

// SeedIdentity moves the last used value of an identity.
func (i *identities) SeedIdentity(ctx context.Context, req *idnodev1.SeedIdentityRequest) (*idnodev1.SeedIdentityResponse, error) {
	return admission.Call(ctx, i.Control, "SeedIdentity", req, i.seedIdentity)
}

func (i *identities) seedIdentity(ctx context.Context, req *idnodev1.SeedIdentityRequest) (*idnodev1.SeedIdentityResponse, error) {
	database, name, err := identityKey(req.GetDatabase(), req.GetName())
	if err != nil {
		return nil, err
	}
	if req.Value == nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidRequest, "value", "the new last used value is missing")
	}
	need := withForce(i.toRaise(i.raisedBy(req, database, name)), req.GetForce())
	what := admission.Target{Kind: admission.TargetIdentity, Database: database, Name: name}
	e, err := i.prepare(ctx, req.GetRequestId(), need, what, 1, func() fingerprint {
		return newFingerprint("SeedIdentity").text(req.GetDatabase()).text(req.GetName()).
			number(req.GetValue()).flag(req.GetForce()).optional(req.Expected)
	})
	if err != nil {
		return nil, err
	}
	seed := &raftlogv1.IdentitySeed{Name: name, Value: req.GetValue(), Force: req.GetForce(), Expected: req.Expected}
	record := audit.Record{Event: audit.EventSeed, Database: database, Name: name, After: req.GetValue(), Force: req.GetForce()}
	now, err := i.proposeAudited(ctx, record, e, seed, false, func(now *raftlogv1.Result) (before, after any) {
		if now.Before != nil {
			before = now.GetBefore()
		}
		return before, now.GetValue()
	})
	return &idnodev1.SeedIdentityResponse{Value: now.GetValue(), LogIndex: now.GetLogIndex()}, err
}

// raisedBy returns the count of numbers that a seed takes, by this node's state of the identity; it
// may be too high.
func (i *identities) raisedBy(req *idnodev1.SeedIdentityRequest, database, name string) uint64 {
	last := req.Expected // Otherwise nothing happens.
	if last == nil {
		counter, _ := i.state.Identity(database, name)
		last = &counter.Last
	}
	if req.GetValue() <= *last {
		return 0
	}
	return uint64(req.GetValue()) - uint64(*last)
}

// DeleteIdentity hides an identity, or forgets it, and returns the last used value at
// that moment.
func (i *identities) DeleteIdentity(ctx context.Context, req *idnodev1.DeleteIdentityRequest) (*idnodev1.DeleteIdentityResponse, error) {
	return admission.Call(ctx, i.Control, "DeleteIdentity", req, i.deleteIdentity)
}

func (i *identities) deleteIdentity(ctx context.Context, req *idnodev1.DeleteIdentityRequest) (*idnodev1.DeleteIdentityResponse, error) {
	database, name, err := identityKey(req.GetDatabase(), req.GetName())
	if err != nil {
		return nil, err
	}
	need := withForce(rights.Delete, req.GetForget())
	e, err := i.prepare(ctx, req.GetRequestId(), need, admission.Target{Database: database, Name: name}, 0, func() fingerprint {
		return newFingerprint("DeleteIdentity").text(req.GetDatabase()).text(req.GetName()).flag(req.GetForget())
	})
	if err != nil {
		return nil, err
	}
	event := audit.EventDelete
	if req.GetForget() {
		event = audit.EventForget
	}
	record, gone := audit.Record{Event: event, Database: database, Name: name}, &raftlogv1.IdentityDelete{Name: name, Forget: req.GetForget()}
	last, err := i.proposeAudited(ctx, record, e, gone, false, func(last *raftlogv1.Result) (before, after any) {
		return last.GetValue(), nil
	})
	return &idnodev1.DeleteIdentityResponse{Value: last.GetValue(), LogIndex: last.GetLogIndex()}, err
}

// toRaise returns the rights to raise a counter by so many numbers. Without roles a raise by more
// than NextRange takes is guarded like force: it may leave no numbers, and a HiLo counter cannot be
// lowered. With roles the right to seed is enough.
func (b *base) toRaise(by uint64) rights.Right {
	return withForce(rights.Seed, by > hilo.MaxAhead && !b.state.Roles().Table.Set())
}

// withForce returns the rights that a call needs that may be made by force.
func withForce(need rights.Right, force bool) rights.Right {
	if force {
		need |= rights.Force
	}
	return need
}

func identityKey(database, name string) (foldedDatabase, foldedName string, err error) {
	foldedDatabase, err = databaseKey(database)
	if err == nil {
		foldedName, err = nameKey(name)
	}
	return foldedDatabase, foldedName, err
}

func nameKey(name string) (folded string, err error) {
	name, err = docid.ParseName(name)
	if err != nil {
		return "", badForm(err, "")
	}
	folded = docid.Fold(name)
	return folded, checkFolded(folded, docid.MaxNameBytes, apierror.ReasonInvalidName, "name")
}

// upTo returns a number of a request that is in 1 to most; 0 means otherwise.
func upTo(most, n, otherwise int64, reason, field string) (int64, error) {
	if n < 0 || n > most {
		return 0, apierror.Invalid(reason, field, "the %s %d is not in 1 to %d", strings.ReplaceAll(field, "_", " "), n, most)
	}
	return cmp.Or(n, otherwise), nil
}

func parseCount(count, most int64) (int64, error) {
	return upTo(most, count, 1, apierror.ReasonInvalidCount, "count")
}
