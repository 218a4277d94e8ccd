package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
)

// reader reads the replicated state, as new as a caller asks for.
type reader struct {
	auth       *authorizer
	linearizer Linearizer
	state      State
}

// settle makes the local state as new as the consistency asks for, and returns
// the log index a read after it is at least as new as.
func (r *reader) settle(ctx context.Context, consistency Consistency) (uint64, error) {
	switch consistency {
	case Stale:
	case Linearizable:
		if err := r.linearize(ctx); err != nil {
			return 0, err
		}
	default:
		return 0, invalid(ReasonInvalidConsistency, "consistency", "there is no consistency %d", consistency)
	}
	return r.state.AppliedIndex(), nil
}

// settleFor is settle for a reader of a name in a database, or of all that begin with it,
// for which rights.Further stands behind it. It checks the reader's right before,
// because any caller could otherwise make the cluster work, and after, when the
// roles are as new as the answer.
func (r *reader) settleFor(ctx context.Context, consistency Consistency, database, name string) (uint64, error) {
	if err := r.auth.authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	index, err := r.settle(ctx, consistency)
	if err != nil {
		return 0, err
	}
	if err := r.auth.authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	return index, nil
}

func (r *reader) linearize(ctx context.Context) error {
	if err := r.linearizer.Linearize(ctx); err != nil {
		return readError(err)
	}
	return nil
}

// page checks the request for a page and settles the state for it.
func (r *reader) page(ctx context.Context, what listing, req ListRequest) (cursor, uint64, error) {
	c, err := newCursor(what, req)
	if err != nil {
		return cursor{}, 0, err
	}
	index, err := r.settleFor(ctx, req.Consistency, c.database, c.prefix+rights.Further)
	return c, index, err
}

// list returns one page of what find finds, each shown with its name.
func list[F, T any](
	ctx context.Context, r *reader, what listing, req ListRequest,
	find func(database, prefix, after string, limit int) []F, shown func(F) (name string, item T),
) (Page[T], error) {
	c, index, err := r.page(ctx, what, req)
	if err != nil {
		return Page[T]{}, err
	}
	return cut(c, find(c.database, c.prefix, c.after, c.size+1), index, shown), nil
}

// asItself shows a name.
func asItself(name string) (string, string) { return name, name }

// GetIdentityRequest names an identity.
type GetIdentityRequest struct {
	Database string
	// Name may end with one pipe.
	Name        string
	Consistency Consistency
}

// Identity is a counter agreed by the cluster.
type Identity struct {
	// Name is folded.
	Name string
	// Value is the last used value.
	Value int64
}

// GetIdentityResponse holds an identity.
type GetIdentityResponse struct {
	Identity Identity
	LogIndex uint64
}

// GetIdentity reads the last used value of an identity.
func (i *identities) GetIdentity(ctx context.Context, req GetIdentityRequest) (GetIdentityResponse, error) {
	return call(ctx, i.calls, "GetIdentity", req, i.getIdentity)
}

func (i *identities) getIdentity(ctx context.Context, req GetIdentityRequest) (GetIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return GetIdentityResponse{}, err
	}
	index, err := i.settleFor(ctx, req.Consistency, database, name)
	if err != nil {
		return GetIdentityResponse{}, err
	}
	counter, ok := i.state.Identity(database, name)
	if !ok || counter.Hidden {
		return GetIdentityResponse{}, &Error{Code: NotFound, Reason: ReasonIdentityNotFound, Message: "there is no such identity"}
	}
	return GetIdentityResponse{Identity: Identity{Name: name, Value: counter.Last}, LogIndex: index}, nil
}

// ListIdentities lists identities in order of their folded names.
func (i *identities) ListIdentities(ctx context.Context, req ListRequest) (Page[Identity], error) {
	return call(ctx, i.calls, "ListIdentities", req, i.listIdentities)
}

func (i *identities) listIdentities(ctx context.Context, req ListRequest) (Page[Identity], error) {
	return list(ctx, i.reader, listIdentities, req, i.state.Identities, func(f fsm.NamedIdentity) (string, Identity) {
		return f.Name, Identity{Name: f.Name, Value: f.Last}
	})
}

// GetHiLoRequest names a tag.
type GetHiLoRequest struct {
	Database    string
	Tag         string
	Consistency Consistency
}

// HiLo is the counter of a collection's tag.
type HiLo struct {
	// Tag is folded.
	Tag string
	// Max is the highest number reserved.
	Max int64
}

// GetHiLoResponse holds a counter.
type GetHiLoResponse struct {
	HiLo     HiLo
	LogIndex uint64
}

// GetHiLo reads the counter of a tag.
func (r *ranges) GetHiLo(ctx context.Context, req GetHiLoRequest) (GetHiLoResponse, error) {
	return call(ctx, r.calls, "GetHiLo", req, r.getHiLo)
}

func (r *ranges) getHiLo(ctx context.Context, req GetHiLoRequest) (GetHiLoResponse, error) {
	counter, index, err := r.readHiLo(ctx, req)
	if err != nil {
		return GetHiLoResponse{}, err
	}
	return GetHiLoResponse{HiLo: HiLo{Tag: docid.Fold(req.Tag), Max: counter.Max}, LogIndex: index}, nil
}

// readHiLo returns a counter that is as new as asked for, and the log index of that.
func (r *ranges) readHiLo(ctx context.Context, req GetHiLoRequest) (hilo.Counter, uint64, error) {
	database, tag, err := hiloKey(req.Database, req.Tag)
	if err != nil {
		return hilo.Counter{}, 0, err
	}
	index, err := r.settleFor(ctx, req.Consistency, database, tag)
	if err != nil {
		return hilo.Counter{}, 0, err
	}
	counter, ok := r.state.HiLo(database, tag)
	if !ok {
		return hilo.Counter{}, 0, &Error{Code: NotFound, Reason: ReasonHiLoNotFound, Message: "there is no such HiLo counter"}
	}
	return counter, index, nil
}

// ListHiLo lists HiLo counters in order of their folded tags.
func (r *ranges) ListHiLo(ctx context.Context, req ListRequest) (Page[HiLo], error) {
	return call(ctx, r.calls, "ListHiLo", req, r.listHiLo)
}

func (r *ranges) listHiLo(ctx context.Context, req ListRequest) (Page[HiLo], error) {
	return list(ctx, r.reader, listHiLo, req, r.state.HiLos, func(f fsm.NamedHiLo) (string, HiLo) {
		return f.Tag, HiLo{Tag: f.Tag, Max: f.Max}
	})
}

// ListClaims lists claimed ids in order of their folded form.
func (c *claims) ListClaims(ctx context.Context, req ListRequest) (Page[string], error) {
	return call(ctx, c.calls, "ListClaims", req, c.listClaims)
}

func (c *claims) listClaims(ctx context.Context, req ListRequest) (Page[string], error) {
	return list(ctx, c.reader, listClaims, req, c.state.Claims, asItself)
}
