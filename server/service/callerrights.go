package service

import (
	"context"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
)

// Principal returns the name of ctx's caller; may be empty.
func (a *authorizer) Principal(ctx context.Context) string { return a.caller(ctx).Principal }

// Rights returns what the caller may do with a name of a database, in any case, or
// with the cluster if both are empty. It is for APIs that show what is possible: each
// use case judges by itself.
func (a *authorizer) Rights(ctx context.Context, database, name string) rights.Right {
	return a.withoutGuarded(ctx, rights.Held(a.state.Roles().Table, a.Principal(ctx), docid.Fold(database), docid.Fold(name)))
}

// Grants returns what gives the caller rights in a database.
func (a *authorizer) Grants(ctx context.Context, database string) []rights.Grant {
	grants := rights.Within(a.state.Roles().Table, a.Principal(ctx), docid.Fold(database))
	for i := range grants {
		grants[i].Rights = a.withoutGuarded(ctx, grants[i].Rights)
	}
	return grants
}

// rightsWithin returns what the caller may do with some name of a database.
func (a *authorizer) rightsWithin(ctx context.Context, database string) (have rights.Right) {
	for _, g := range a.Grants(ctx, database) {
		have |= g.Rights
	}
	return have
}

// withoutGuarded takes the rights away that are kept to administrators as long as there are
// no roles.
func (a *authorizer) withoutGuarded(ctx context.Context, have rights.Right) rights.Right {
	if !a.state.Roles().Table.Set() && a.authorizeGuarded(ctx, rights.Guarded) != nil {
		return have &^ rights.Guarded
	}
	return have
}

// MayRead says whether the caller may read everything.
func (a *authorizer) MayRead(ctx context.Context) bool {
	return a.authorize(ctx, rights.Read, "", "") == nil
}
