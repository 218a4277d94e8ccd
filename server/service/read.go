package service

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// settle makes the local state as new as the consistency asks for, and returns
// the log index a read after it is at least as new as.
func (b *base) settle(ctx context.Context, consistency idnodev1.Consistency) (uint64, error) {
	switch consistency {
	case idnodev1.Consistency_CONSISTENCY_STALE:
	case idnodev1.Consistency_CONSISTENCY_UNSPECIFIED, idnodev1.Consistency_CONSISTENCY_LINEARIZABLE:
		if err := b.linearize(ctx); err != nil {
			return 0, err
		}
	default:
		return 0, apierror.Invalid(apierror.ReasonInvalidConsistency, "consistency", "there is no consistency %d", consistency)
	}
	return b.state.AppliedIndex(), nil
}

// settleFor is settle for a reader of a name in a database, or of all names with that prefix if
// rights.Further follows it. It checks the reader's right before, because any caller could
// otherwise make the cluster work, and after, when the roles are as new as the answer.
func (b *base) settleFor(ctx context.Context, consistency idnodev1.Consistency, database, name string) (uint64, error) {
	if err := b.Authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	index, err := b.settle(ctx, consistency)
	if err != nil {
		return 0, err
	}
	if err := b.Authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	return index, nil
}

func (b *base) linearize(ctx context.Context) error {
	if err := b.linearizer.Linearize(ctx); err != nil {
		return readError(err)
	}
	return nil
}

// list makes the call of a use case that returns one page of find's results, each with its name.
func list[F, T any](
	ctx context.Context, b *base, useCase string, what listing, req listRequest,
	find func(database, prefix, after string, limit int) []F, shown func(F) (name string, item T),
) (Page[T], error) {
	return admission.Call(ctx, b.Control, useCase, req, func(ctx context.Context, req listRequest) (Page[T], error) {
		c, err := newCursor(what, req)
		if err != nil {
			return Page[T]{}, err
		}
		index, err := b.settleFor(ctx, req.GetConsistency(), c.database, c.prefix+rights.Further)
		if err != nil {
			return Page[T]{}, err
		}
		return cut(c, find(c.database, c.prefix, c.after, c.size+1), index, shown), nil
	})
}

// asItself shows a name.
func asItself(name string) (string, string) { return name, name }

// GetIdentity reads the last used value of an identity.
func (i *identities) GetIdentity(ctx context.Context, req *idnodev1.GetIdentityRequest) (*idnodev1.GetIdentityResponse, error) {
	return admission.Call(ctx, i.Control, "GetIdentity", req, i.getIdentity)
}

func (i *identities) getIdentity(ctx context.Context, req *idnodev1.GetIdentityRequest) (*idnodev1.GetIdentityResponse, error) {
	database, name, err := identityKey(req.GetDatabase(), req.GetName())
	if err != nil {
		return nil, err
	}
	index, err := i.settleFor(ctx, req.GetConsistency(), database, name)
	if err != nil {
		return nil, err
	}
	counter, ok := i.state.Identity(database, name)
	if !ok || counter.Hidden {
		return nil, &apierror.Error{Code: apierror.CodeNotFound, Reason: apierror.ReasonIdentityNotFound, Message: "there is no such identity"}
	}
	return &idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: name, Value: counter.Last}, LogIndex: index}, nil
}

// ListIdentities lists identities in order of their folded names.
func (i *identities) ListIdentities(ctx context.Context, req *idnodev1.ListIdentitiesRequest) (*idnodev1.ListIdentitiesResponse, error) {
	shown := func(f fsm.NamedIdentity) (string, *idnodev1.Identity) {
		return f.Name, &idnodev1.Identity{Name: f.Name, Value: f.Last}
	}
	page, err := list(ctx, i.base, "ListIdentities", listIdentities, req, i.state.Identities, shown)
	return &idnodev1.ListIdentitiesResponse{Identities: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, err
}

// GetHiLo reads the counter of a tag.
func (r *ranges) GetHiLo(ctx context.Context, req *idnodev1.GetHiLoRequest) (*idnodev1.GetHiLoResponse, error) {
	return admission.Call(ctx, r.Control, "GetHiLo", req, r.getHiLo)
}

func (r *ranges) getHiLo(ctx context.Context, req *idnodev1.GetHiLoRequest) (*idnodev1.GetHiLoResponse, error) {
	counter, index, err := r.readHiLo(ctx, req)
	if err != nil {
		return nil, err
	}
	return &idnodev1.GetHiLoResponse{Hilo: &idnodev1.HiLo{Tag: docid.Fold(req.GetTag()), Max: counter.Max}, LogIndex: index}, nil
}

// ofTag is a request that reads a tag.
type ofTag interface {
	GetDatabase() string
	GetTag() string
	GetConsistency() idnodev1.Consistency
}

// readHiLo returns a counter that is as new as asked for, and the log index of that.
func (r *ranges) readHiLo(ctx context.Context, req ofTag) (hilo.Counter, uint64, error) {
	database, tag, err := hiloKey(req.GetDatabase(), req.GetTag())
	if err != nil {
		return hilo.Counter{}, 0, err
	}
	index, err := r.settleFor(ctx, req.GetConsistency(), database, tag)
	if err != nil {
		return hilo.Counter{}, 0, err
	}
	counter, ok := r.state.HiLo(database, tag)
	if !ok {
		return hilo.Counter{}, 0, &apierror.Error{
			Code: apierror.CodeNotFound, Reason: apierror.ReasonHiLoNotFound,
			Message: "there is no such HiLo counter",
		}
	}
	return counter, index, nil
}

// ListHiLo lists HiLo counters in order of their folded tags.
func (r *ranges) ListHiLo(ctx context.Context, req *idnodev1.ListHiLoRequest) (*idnodev1.ListHiLoResponse, error) {
	page, err := list(ctx, r.base, "ListHiLo", listHiLo, req, r.state.HiLos, func(f fsm.NamedHiLo) (string, *idnodev1.HiLo) {
		return f.Tag, &idnodev1.HiLo{Tag: f.Tag, Max: f.Max}
	})
	return &idnodev1.ListHiLoResponse{Hilos: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, err
}

// ListClaims lists claimed ids in order of their folded form.
func (c *claims) ListClaims(ctx context.Context, req *idnodev1.ListClaimsRequest) (*idnodev1.ListClaimsResponse, error) {
	page, err := list(ctx, c.base, "ListClaims", listClaims, req, c.state.Claims, asItself)
	return &idnodev1.ListClaimsResponse{Ids: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, err
}

// WhoHolds finds out who got the range that a number is in.
func (r *ranges) WhoHolds(ctx context.Context, req *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	return admission.Call(ctx, r.Control, "WhoHolds", req, r.whoHolds)
}

func (r *ranges) whoHolds(ctx context.Context, req *idnodev1.WhoHoldsRequest) (*idnodev1.WhoHoldsResponse, error) {
	if req.GetNumber() < 1 {
		return nil, apierror.Invalid(apierror.ReasonInvalidNumber, "number", "the number %d is below 1", req.GetNumber())
	}
	counter, index, err := r.readHiLo(ctx, req)
	if err != nil {
		return nil, err
	}
	res := &idnodev1.WhoHoldsResponse{State: idnodev1.RangeState_RANGE_STATE_NOT_ISSUED, LogIndex: index}
	at := slices.IndexFunc(counter.Outstanding, func(o hilo.Outstanding) bool { return o.Low <= req.GetNumber() && req.GetNumber() <= o.High })
	if at < 0 {
		if req.GetNumber() <= counter.Max {
			res.State = idnodev1.RangeState_RANGE_STATE_NOT_REMEMBERED
		}
		return res, nil
	}
	found := counter.Outstanding[at]
	res.State, res.Low, res.High = idnodev1.RangeState_RANGE_STATE_OUTSTANDING, found.Low, found.High
	holder := fsm.HolderOf(found)
	if holder.GetReserve() {
		res.State = idnodev1.RangeState_RANGE_STATE_RESERVED
	}
	if holder != nil {
		res.Holder = &idnodev1.RangeHolder{
			Label: holder.GetLabel(), Principal: holder.GetPrincipal(), NodeTag: holder.GetNode(),
			IssuedAt: timestamppb.New(time.Unix(holder.GetIssuedUnix(), 0)),
		}
	}
	return res, nil
}
