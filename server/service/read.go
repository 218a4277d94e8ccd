package service

import (
	"context"
	"strings"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
)

// settle makes the local state as new as the consistency asks for, and returns
// the log index a read after it is at least as new as.
func (s *Service) settle(ctx context.Context, consistency Consistency) (uint64, error) {
	switch consistency {
	case Stale:
	case Linearizable:
		if err := s.linearize(ctx); err != nil {
			return 0, err
		}
	default:
		return 0, invalid(ReasonInvalidConsistency, "consistency", "there is no consistency %d", consistency)
	}
	return s.cfg.State.AppliedIndex(), nil
}

// settleFor is settle for a reader of a name in a database, or of all that begin with it,
// for which rights.Further stands behind it. It checks the reader's right before,
// because any caller could otherwise make the cluster work, and after, when the
// roles are as new as the answer.
func (s *Service) settleFor(ctx context.Context, consistency Consistency, database, name string) (uint64, error) {
	if err := s.authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	index, err := s.settle(ctx, consistency)
	if err != nil {
		return 0, err
	}
	if err := s.authorize(ctx, rights.Read, database, name); err != nil {
		return 0, err
	}
	name = strings.TrimSuffix(name, rights.Further)
	return index, s.recordRead(ctx, audit.Record{Event: audit.EventRead, Database: database, Name: name})
}

// MayRead says whether the caller may read everything.
func (s *Service) MayRead(ctx context.Context) bool {
	return s.authorize(ctx, rights.Read, "", "") == nil
}

func (s *Service) linearize(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.cfg.Linearizer.Linearize(ctx); err != nil {
		return readError(err)
	}
	return nil
}

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
func (s *Service) GetIdentity(ctx context.Context, req GetIdentityRequest) (GetIdentityResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return GetIdentityResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.getIdentity(ctx, req)
	return res, s.finish(ctx, "GetIdentity", err)
}

func (s *Service) getIdentity(ctx context.Context, req GetIdentityRequest) (GetIdentityResponse, error) {
	database, name, err := identityKey(req.Database, req.Name)
	if err != nil {
		return GetIdentityResponse{}, err
	}
	index, err := s.settleFor(ctx, req.Consistency, database, name)
	if err != nil {
		return GetIdentityResponse{}, err
	}
	counter, ok := s.cfg.State.Identity(database, name)
	if !ok || counter.Hidden {
		return GetIdentityResponse{}, &Error{Code: NotFound, Reason: ReasonIdentityNotFound, Message: "there is no such identity"}
	}
	return GetIdentityResponse{Identity: Identity{Name: name, Value: counter.Last}, LogIndex: index}, nil
}

// ListIdentitiesResponse is one page, by folded name.
type ListIdentitiesResponse struct {
	Identities    []Identity
	NextPageToken string
	LogIndex      uint64
}

// ListIdentities lists identities in order of their folded names.
func (s *Service) ListIdentities(ctx context.Context, req ListRequest) (ListIdentitiesResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListIdentitiesResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listIdentities(ctx, req)
	return res, s.finish(ctx, "ListIdentities", err)
}

func (s *Service) listIdentities(ctx context.Context, req ListRequest) (ListIdentitiesResponse, error) {
	c, index, err := s.page(ctx, listIdentities, req)
	if err != nil {
		return ListIdentitiesResponse{}, err
	}
	found := s.cfg.State.Identities(c.database, c.prefix, c.after, c.size+1)
	identities := make([]Identity, len(found))
	for i, f := range found {
		identities[i] = Identity{Name: f.Name, Value: f.Last}
	}
	page, next := cut(c, identities, func(i Identity) string { return i.Name })
	return ListIdentitiesResponse{Identities: page, NextPageToken: next, LogIndex: index}, nil
}

// page checks the request for a page and settles the state for it.
func (s *Service) page(ctx context.Context, what listing, req ListRequest) (cursor, uint64, error) {
	c, err := newCursor(what, req)
	if err != nil {
		return cursor{}, 0, err
	}
	index, err := s.settleFor(ctx, req.Consistency, c.database, c.prefix+rights.Further)
	return c, index, err
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
func (s *Service) GetHiLo(ctx context.Context, req GetHiLoRequest) (GetHiLoResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return GetHiLoResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.getHiLo(ctx, req)
	return res, s.finish(ctx, "GetHiLo", err)
}

func (s *Service) getHiLo(ctx context.Context, req GetHiLoRequest) (GetHiLoResponse, error) {
	database, tag, err := hiloKey(req.Database, req.Tag)
	if err != nil {
		return GetHiLoResponse{}, err
	}
	index, err := s.settleFor(ctx, req.Consistency, database, tag)
	if err != nil {
		return GetHiLoResponse{}, err
	}
	counter, ok := s.cfg.State.HiLo(database, tag)
	if !ok {
		return GetHiLoResponse{}, &Error{Code: NotFound, Reason: ReasonHiLoNotFound, Message: "there is no such HiLo counter"}
	}
	return GetHiLoResponse{HiLo: HiLo{Tag: tag, Max: counter.Max}, LogIndex: index}, nil
}

// ListHiLoResponse is one page, by folded tag.
type ListHiLoResponse struct {
	HiLos         []HiLo
	NextPageToken string
	LogIndex      uint64
}

// ListHiLo lists HiLo counters in order of their folded tags.
func (s *Service) ListHiLo(ctx context.Context, req ListRequest) (ListHiLoResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListHiLoResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listHiLo(ctx, req)
	return res, s.finish(ctx, "ListHiLo", err)
}

func (s *Service) listHiLo(ctx context.Context, req ListRequest) (ListHiLoResponse, error) {
	c, index, err := s.page(ctx, listHiLo, req)
	if err != nil {
		return ListHiLoResponse{}, err
	}
	found := s.cfg.State.HiLos(c.database, c.prefix, c.after, c.size+1)
	hilos := make([]HiLo, len(found))
	for i, f := range found {
		hilos[i] = HiLo{Tag: f.Tag, Max: f.Max}
	}
	page, next := cut(c, hilos, func(h HiLo) string { return h.Tag })
	return ListHiLoResponse{HiLos: page, NextPageToken: next, LogIndex: index}, nil
}

// ListClaimsResponse is one page of folded ids.
type ListClaimsResponse struct {
	IDs           []string
	NextPageToken string
	LogIndex      uint64
}

// ListClaims lists claimed ids in order of their folded form.
func (s *Service) ListClaims(ctx context.Context, req ListRequest) (ListClaimsResponse, error) {
	caller, err := s.enter(ctx)
	if err != nil {
		return ListClaimsResponse{}, err
	}
	defer s.leave(caller)
	res, err := s.listClaims(ctx, req)
	return res, s.finish(ctx, "ListClaims", err)
}

func (s *Service) listClaims(ctx context.Context, req ListRequest) (ListClaimsResponse, error) {
	c, index, err := s.page(ctx, listClaims, req)
	if err != nil {
		return ListClaimsResponse{}, err
	}
	found := s.cfg.State.Claims(c.database, c.prefix, c.after, c.size+1)
	page, next := cut(c, found, func(id string) string { return id })
	return ListClaimsResponse{IDs: page, NextPageToken: next, LogIndex: index}, nil
}
