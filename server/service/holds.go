package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
)

// Principal returns the name of the caller of ctx; empty for one without.
func (s *Service) Principal(ctx context.Context) string { return s.caller(ctx).Principal }

// Rights returns what the caller may do with a name of a database, in any case, or
// with the cluster if both are empty. It is for APIs that show what is possible: each
// use case judges by itself.
func (s *Service) Rights(ctx context.Context, database, name string) rights.Right {
	return s.guarded(ctx, rights.Held(s.cfg.State.Roles().Table, s.Principal(ctx), docid.Fold(database), docid.Fold(name)))
}

// RightsWithin returns what the caller may do with some name of a database.
func (s *Service) RightsWithin(ctx context.Context, database string) rights.Right {
	return s.guarded(ctx, rights.HeldWithin(s.cfg.State.Roles().Table, s.Principal(ctx), docid.Fold(database)))
}

// guarded takes the rights away that are kept to administrators as long as there are
// no roles.
func (s *Service) guarded(ctx context.Context, have rights.Right) rights.Right {
	if !s.cfg.State.Roles().Table.Set() && s.authorizeGuarded(ctx, rights.Guarded) != nil {
		return have &^ rights.Guarded
	}
	return have
}
